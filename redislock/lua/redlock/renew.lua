#!lua flags=allow-oom
-- redlock/renew.lua: proves claims; quorum.Node.Renew.
--
-- KEYS, ARGV  see lib.lua
--
-- Replies, for each claim
--   "mine <counter> <counter before> <took over>"
--   behind, counter, closed for, ID, holder...
--                                 the claim has the name, under a smaller counter
--   free                          nobody has the name, and the counter is smaller
--   held [, closed for, ID, holder...]
--   revoked                       it was taken away from the claim
--   failed, message               only this one
-- or novote
--
-- It runs also when memory is out: a renewal that fails then would end locks.
local call = redis.call
if call('HGET', KEYS[1], 'id') ~= ARGV[1] then return {'novote'} end
local T = call('TIME')
local all, slow = {}, not not KEYS[3 + ARGV[2]]
if not slow then
  -- The usual case: the claims have their names, under their tokens.
  local now = T[1] * 1000000 + T[2]
  for i = 1, tonumber(ARGV[2]) do
    local who, what = ARGV[2 * i + 1], ARGV[2 * i + 2]
    local mine, v = 'h' .. who, redis.pcall('GET', KEYS[i + 2])
    local proved = type(v) == 'string' and string.sub(v, 1, #mine) == mine
    if proved then
      local till, took, prev, at = string.match(v, '^(%d+) %d+ %d (%d) (%d+) ()', #mine + 1)
      local ttl = string.match(what, '^%d+ ')
      proved = now < till + 0 and string.sub(v, at, at + #ttl - 1) == ttl
      if proved then
        local long = now + ttl
        if long > till + 0 then
          call('SET', KEYS[i + 2], mine .. string.format('%d', long) .. string.sub(v, #mine + #till + 1))
        end
        all[i] = 'mine ' .. string.match(who, '^%d+ ') .. prev .. ' ' .. took
      end
    end
    if not proved then
      slow = true
      all[i] = false
    end
  end
  if not slow then return all end
end
local node = call('HMGET', KEYS[1], 'id', 'base', 'hi', 'longest')
--#lib
for i = 1, count do
  local c = claim(i)
  -- A key that holds something else spoils no other claim.
  local ok, n = pcall(name, i)
  if all[i] then
    -- proved above
  elseif not ok then
    all[i] = {'failed', type(n) == 'table' and n.err or tostring(n)}
  elseif mine(n, c) and (c.fence == 0 or n.c == c.fence) then
    extend(n, c)
    save(n)
    all[i] = 'mine ' .. digits(n.c) .. ' ' .. digits(n.prev) .. ' ' .. n.took
  elseif revoked(n, c) and (c.fence == 0 or n.c == c.fence) then
    all[i] = {'revoked'}
  elseif mine(n, c) and n.c < c.fence then
    all[i] = behind(n)
  elseif n.s == 'f' and n.c < c.fence then
    all[i] = {'free'}
  else
    all[i] = other(n, 'held')
  end
end
return all
