#!lua
-- acquire.lua: asks once for a claim.
--
-- KEYS[1]  the mark
-- KEYS[2]  the name
-- KEYS[3]  the journal, if it is on
-- ARGV[1]  the claim, as a request (see lib.lua)
-- ARGV[2]  its life (see lib.lua); '': it replaces another
-- ARGV[3]  the name in plain, if the journal is on
--
-- Replies  token, a number                          the name was idle
--          "granted <token> <fence> <took over>"
--          "held <retry after> <reserved> <deadlock>", place [, holder]
--          nothing [, holder]       the claim to replace is not held
--          revoked                  the claim to replace was revoked
--          other                    the ID stands for another claim
-- A holder is "<state> <token> <fence> <units> <capacity> <age> <left> <TTL> <note>".
--
-- It may not run out of memory: what it adds has to be refused then.
local M, J, T, v = KEYS[1], KEYS[3] or false, nil, nil
if not J and ARGV[2] ~= '' then
  -- The usual case, with as little work as can be: nobody has the name. It is
  -- what take does on an empty name. The mark tells whether the time will do as a
  -- token; up to 2^53, which is in the year 2255, it is exact as a number.
  T = redis.call('TIME')
  v = redis.call('SET', KEYS[2], 'f' .. T[1] .. ' ' .. T[2] .. ' ' .. ARGV[1], 'PX', ARGV[2], 'NX', 'GET')
  if not v then
    local token = T[1] * 1000000 + T[2]
    local mark = redis.call('SET', M, token, 'GET')
    if not mark or token > mark + 0 then return token end
    redis.call('SET', M, mark)
    redis.call('DEL', KEYS[2])
  end
end
--#lib
local c, n = request(ARGV[1]), load(KEYS[2], ARGV[3], v)
local refused, queues = judge(n, c)
if not refused then
  refused = take(n, c)
elseif queues then
  refused[2] = queue(n, c)
end
save(n)
return refused
