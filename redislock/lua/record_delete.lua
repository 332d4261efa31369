#!lua flags=allow-oom
-- record_delete.lua: deletes a record if its version is as expected.
--
-- KEYS[1]  the record
-- ARGV[1]  the version expected; '0': no record
--
-- Replies  deleted, 0 | stale, version
local v, version = redis.call('GET', KEYS[1]), '0'
if v then
  local ok, r = pcall(cmsgpack.unpack, v)
  if not ok or type(r) ~= 'table' or r[1] ~= 'r1' then
    return redis.error_reply('WRONGTYPE the key ' .. KEYS[1] .. ' holds something else than a record')
  end
  version = r[2]
end
if version ~= ARGV[1] then return {'stale', version} end
redis.call('DEL', KEYS[1])
return {'deleted', '0'}
