-- The guard stands before a script that writes, and runs in one step with it.
--   KEYS[1]  where the newest token is kept      KEYS[2...]  the script's own
--   ARGV[1]  the token that is offered           ARGV[3...]  the script's own
--   ARGV[2]  for how many milliseconds a token is remembered; 0: for ever
-- It replies with the error DIBS_STALE and the newest token, or goes on with the
-- script. Tokens are compared as text, since numbers in Lua lose digits.
local dibs_newest = redis.call('GET', KEYS[1]) or '0'
if string.find(dibs_newest, '%D') then
	return redis.error_reply('DIBS_NOTOKEN ' .. KEYS[1])
end
if #dibs_newest > #ARGV[1] or #dibs_newest == #ARGV[1] and dibs_newest > ARGV[1] then
	return redis.error_reply('DIBS_STALE ' .. dibs_newest)
end
if dibs_newest ~= ARGV[1] then
	redis.call('SET', KEYS[1], ARGV[1])
end
if ARGV[2] ~= '0' then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
table.remove(KEYS, 1)
table.remove(ARGV, 1)
table.remove(ARGV, 1)
