#!lua
-- record_put.lua: writes a record if its version is as expected.
--
-- KEYS[1]  the mark
-- KEYS[2]  the record
-- ARGV[1]  the version expected; '0': no record
-- ARGV[2]  the token's name; '': name and token stay as they are
-- ARGV[3]  the token
-- ARGV[4]  the value
-- ARGV[5]  the retention, in milliseconds
--
-- Replies  put, version | stale, version | fenced, token
--
-- A version comes from the same counter as tokens, so that none is given out
-- twice, not even after its record has been forgotten.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end
local M, R = KEYS[1], KEYS[2]
local name, token = ARGV[2], ARGV[3]
local v = redis.call('GET', R)
local old = {'r1', '0', '', '0', ''}
if v then
  local ok, r = pcall(cmsgpack.unpack, v)
  if not ok or type(r) ~= 'table' or r[1] ~= 'r1' then
    return redis.error_reply('WRONGTYPE the key ' .. R .. ' holds something else than a record')
  end
  old = r
end
if name == '' then
  name, token = old[3], old[4]
elseif name == old[3] and less(token, old[4]) then
  return {'fenced', old[4]}
end
if ARGV[1] ~= old[2] then return {'stale', old[2]} end
local t = redis.call('TIME')
local version = t[1] .. string.format('%06d', t[2])
local mark = redis.pcall('SET', M, version, 'GET')
local number = type(mark) == 'string' and string.find(mark, '^%d+$')
if mark and not (number and less(mark, version)) then -- see lib.lua
  if type(mark) == 'string' then redis.call('SET', M, mark) end
  if not number or type(redis.pcall('INCR', M)) == 'table' then
    if type(mark) == 'table' and not string.find(mark.err, '^WRONGTYPE') then return mark end
    return redis.error_reply('NOMARK the key ' .. M .. ' holds no number from which tokens can be drawn')
  end
  version = redis.call('GET', M)
end
redis.call('SET', R, cmsgpack.pack({'r1', version, name, token, ARGV[4]}), 'PX', ARGV[5])
return {'put', version}
