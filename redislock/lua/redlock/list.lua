#!lua flags=no-writes
-- redlock/list.lua: who has names, as far as this node knows. It changes nothing.
--
-- KEYS     see lib.lua
-- ARGV[1]  the marker that the client knows
-- ARGV[2]  how many names there are
--
-- Replies, for each name
--   held [, closed for, ID, holder...]
--   failed, message               only this one
-- or novote
local call = redis.call
local node = call('HMGET', KEYS[1], 'id', 'base', 'hi', 'longest')
if node[1] ~= ARGV[1] then return {'novote'} end
local T = call('TIME')
--#lib
local all = {}
for i = 1, count do
  local ok, n = pcall(name, i)
  if ok then
    all[i] = other(n, 'held')
  else
    all[i] = {'failed', type(n) == 'table' and n.err or tostring(n)}
  end
end
return all
