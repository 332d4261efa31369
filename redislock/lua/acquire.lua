#!lua
-- acquire.lua: asks once for a claim.
--
-- KEYS[1]  the mark
-- KEYS[2]  the name
-- KEYS[3]  the journal, if it is on
-- ARGV[1]  the claim, packed (see lib.lua)
-- ARGV[2]  the name in plain, if the journal is on
--
-- Replies  "granted <token> <fence> <took over>"
--          held, place, retry after, reserved, deadlock [, holder...]
--          nothing [, holder...]    the claim to replace is not held
--          revoked                  the claim to replace was revoked
--          other                    the ID stands for another claim
-- A holder is state, token, fence, units, capacity, age, left, TTL, note.
--
-- It may not run out of memory: what it adds has to be refused then.
local c = cmsgpack.unpack(ARGV[1])
local M, J = KEYS[1], KEYS[3] or false
if not J and c[FROM] == '' and redis.call('EXISTS', KEYS[2]) == 0 then
  -- The usual case, with as little work as can be: nobody has the name. It is
  -- what take does on an empty name.
  local t = redis.call('TIME')
  local token = t[1] .. string.format('%06d', t[2])
  local mark = redis.call('SET', M, token, 'GET')
  if mark and (#mark > #token or #mark == #token and mark >= token) then
    redis.call('SET', M, mark)
    redis.call('INCR', M)
    token = redis.call('GET', M)
  end
  local now, fence, gen = t[1] * 1000000 + t[2], '0', ''
  if c[UNITS] == c[CAP] then fence = token elseif c[CAP] == UNLIMITED then fence, gen = token, token end
  c[TOKEN], c[FENCE], c[UNTIL], c[GRANTED], c[HEARD] = token, fence, now + c[TTL], now, now
  local far = now + math.max(c[TTL], c[KEEP]) + c[DELAY] + math.max(1000000, math.min(c[TTL], 60000000))
  redis.call('SET', KEYS[2], cmsgpack.pack({'d1', 0, gen, 0, 0, c}), 'PXAT', string.format('%.0f', math.ceil(far / 1000)))
  return {'granted ' .. token .. ' ' .. fence .. ' 0'}
end
--#lib
local n = load(KEYS[2], ARGV[2])
local refused, queues = judge(n, c)
if not refused then
  refused = take(n, c)
elseif queues then
  refused[2] = queue(n, c)
end
save(n)
return refused
