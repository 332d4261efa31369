#!lua flags=allow-oom
-- redlock/revoke.lua: takes a claim away by its token.
--
-- KEYS     see lib.lua
-- ARGV[1]  the marker that the client knows
-- ARGV[2]  1, for one name
-- ARGV[3]  the token
-- ARGV[4]  '1': the name is freed at once; '0': when its holder lets go, or at the
--          end of its time
--
-- Replies  "mine <counter> 0 0"          it was the claim's name
--          held [, closed for, ID, holder...]
--          novote
local call = redis.call
local node = call('HMGET', KEYS[1], 'id', 'base', 'hi', 'longest')
if node[1] ~= ARGV[1] then return {'novote'} end
local T = call('TIME')
--#lib
local n = name(1)
if n.s == 'f' or n.foreign or digits(n.c) ~= ARGV[3] then return other(n, 'held') end
n.was = n.id
if ARGV[4] == '1' then
  free(n, now)
  n.died = 1
elseif n.s == 'h' then
  n.s = 'r'
end
save(n)
return 'mine ' .. ARGV[3] .. ' 0 0'
