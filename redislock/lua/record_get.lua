#!lua flags=no-writes
-- record_get.lua: reads records.
--
-- KEYS     the records
--
-- Replies  {now} and for each record {version, value, token's name, token,
--          milliseconds to live}, or {} if there is none.
-- A record is one string, {'r1', version, token's name, token, value} packed,
-- whose expiry is its retention's end.
local t = redis.call('TIME')
local all = {{t[1] .. string.format('%06d', t[2])}}
for i, key in ipairs(KEYS) do
  local v, row = redis.call('GET', key), {}
  if v then
    local ok, r = pcall(cmsgpack.unpack, v)
    if not ok or type(r) ~= 'table' or r[1] ~= 'r1' then
      return redis.error_reply('WRONGTYPE the key ' .. key .. ' holds something else than a record')
    end
    row = {r[2], r[5], r[3], r[4], redis.call('PTTL', key)}
  end
  all[i + 1] = row
end
return all
