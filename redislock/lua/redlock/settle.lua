#!lua
-- redlock/settle.lua: raises the counter of names to the fence under which the
-- claim is to be granted, or was; quorum.Node.Settle.
--
-- KEYS, ARGV  see lib.lua
--
-- Replies, for each claim
--   mine
--   passed, counter               the claim has the name, under a larger counter
--   held [, closed for, ID, holder...]
-- or novote
--
-- It may not run out of memory: what it adds has to be refused then.
local call = redis.call
local node = call('HMGET', KEYS[1], 'id', 'base', 'hi', 'longest')
if node[1] ~= ARGV[1] then return {'novote'} end
local T = call('TIME')
--#lib
local all = {}
for i = 1, count do
  local n, c = name(i), claim(i)
  if mine(n, c) and n.c > c.fence then
    all[i] = {'passed', digits(n.c)}
  elseif mine(n, c) then
    n.c = c.fence
    extend(n, c)
    save(n)
    all[i] = {'mine'}
  elseif n.s == 'f' and n.c < c.fence then
    n.prev, n.c = n.c, c.fence
    take(n, c)
    save(n)
    all[i] = {'mine'}
  else
    all[i] = other(n, 'held')
  end
end
return all
