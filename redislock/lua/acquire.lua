#!lua
-- acquire.lua: asks once for a claim.
--
-- KEYS[1]  the mark
-- KEYS[2]  the name
-- KEYS[3]  the journal, if it is on
-- ARGV[1]  the claim, packed (see lib.lua)
-- ARGV[2]  its TTL; '': it replaces another
-- ARGV[3]  its life (see lib.lua)
-- ARGV[4]  the name in plain, if the journal is on
--
-- Replies  "fresh <token>"                          the name was idle
--          "granted <token> <fence> <took over>"
--          held, place, retry after, reserved, deadlock [, holder...]
--          nothing [, holder...]    the claim to replace is not held
--          revoked                  the claim to replace was revoked
--          other                    the ID stands for another claim
-- A holder is state, token, fence, units, capacity, age, left, TTL, note.
--
-- It may not run out of memory: what it adds has to be refused then.
local M, J, v = KEYS[1], KEYS[3] or false, nil
if not J and ARGV[2] ~= '' then
  -- The usual case, with as little work as can be: nobody has the name. It is
  -- what take does on an empty name.
  local t = redis.call('TIME')
  local now = t[1] .. string.sub('00000' .. t[2], -6)
  local rest = ' ' .. now .. ' ' .. now .. ' ' .. ARGV[2] .. ' ' .. ARGV[3] .. ' ' .. ARGV[1]
  v = redis.call('SET', KEYS[2], 'f' .. now .. rest, 'PX', ARGV[3], 'NX', 'GET')
  if not v then
    local token, mark = now, redis.call('SET', M, now, 'GET')
    if mark and (#mark > #now or #mark == #now and mark >= now) then
      redis.call('SET', M, mark)
      redis.call('INCR', M)
      token = redis.call('GET', M)
      redis.call('SET', KEYS[2], 'f' .. token .. rest, 'PX', ARGV[3])
    end
    return 'fresh ' .. token
  end
end
--#lib
local c, n = cmsgpack.unpack(ARGV[1]), load(KEYS[2], ARGV[4], v)
local refused, queues = judge(n, c)
if not refused then
  refused = take(n, c)
elseif queues then
  refused[2] = queue(n, c)
end
save(n)
return refused
