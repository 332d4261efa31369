#!lua
-- redlock/init.lua: makes a server a node of a quorum, or notes something about
-- it that has changed.
--
-- KEYS[1]   the node's own hash
-- ARGV[1]   what the field "is" has to be for the change to be made; '' if the
--           hash must not be there
-- ARGV[2]   the name of the field "is"
-- ARGV[3]   what base and hi are raised to
-- ARGV[4...] fields and values
--
-- Replies  the hash, after the change if it was made
local now = redis.call('HGET', KEYS[1], ARGV[2]) or ''
if now == ARGV[1] and (now ~= '' or redis.call('EXISTS', KEYS[1]) == 0) then
  for i = 4, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
  for _, f in ipairs({'base', 'hi'}) do
    local old = redis.call('HGET', KEYS[1], f) or '0'
    if #old < #ARGV[3] or #old == #ARGV[3] and old < ARGV[3] then redis.call('HSET', KEYS[1], f, ARGV[3]) end
  end
end
return redis.call('HGETALL', KEYS[1])
