#!lua
-- acquire.lua: asks once for claims, each by itself.
--
-- KEYS[1]      the mark
-- KEYS[2...]   the names, one for each claim, not distinct
-- KEYS[last]   the journal, if it is on
-- ARGV[1]      how many claims there are
-- ARGV[2...]   for each the claim, as a request (see lib.lua), and its life (see
--              lib.lua); '': it replaces another
-- ARGV[...]    then the names in plain, if the journal is on
--
-- Replies, for each claim; if there is one, this alone
--   token, a number                          the name was idle
--   "granted <token> <fence> <took over>"
--   "held <retry after> <reserved> <deadlock>", place [, holder]
--   nothing [, holder]       the claim to replace is not held
--   revoked                  the claim to replace was revoked
--   other                    the ID stands for another claim
--   failed, message          only this one
-- A holder is "<state> <token> <fence> <units> <capacity> <age> <left> <TTL> <note>".
--
-- It may not run out of memory: what it adds has to be refused then.
local M, T, count = KEYS[1], nil, ARGV[1] + 0
local J = KEYS[count + 2] or false
local all, v, slow = {}, nil, count
if not J then
  -- The usual case, with as little work as can be: nobody has the name. It is
  -- what take does on an empty name. The mark tells whether the time will do as a
  -- token, and what follows it for the next; up to 2^53, which is in the year
  -- 2255, it is exact as a number.
  T = redis.call('TIME')
  local s, us = T[1], T[2]
  local first = s * 1000000 + us
  local token, last = first, nil
  for i = 1, count do
    local life = ARGV[2 * i + 1]
    v = life ~= '' and redis.pcall('SET', KEYS[i + 1], 'f' .. s .. ' ' .. us .. ' ' .. ARGV[2 * i], 'PX', life, 'NX', 'GET')
    if life == '' then
      -- It takes more.
    elseif not v then
      last = s .. string.sub('00000' .. us, -6)
      all[i], token, slow = token, token + 1, slow - 1
      if i < count then
        us = us + 1
        if us == 1000000 then s, us = s + 1, 0 end
      end
    elseif type(v) == 'table' then
      all[i], slow = {'failed', v.err}, slow - 1
    end
  end
  if last then
    local mark = redis.call('SET', M, last, 'GET')
    if mark and first <= mark + 0 then -- the clock is behind: as if nothing had been tried
      redis.call('SET', M, mark)
      for i = 1, count do
        if type(all[i]) == 'number' then
          redis.call('DEL', KEYS[i + 1])
          all[i], slow = nil, slow + 1
        end
      end
    end
  end
  if slow == 0 then return count == 1 and all[1] or all end
end
--#lib
local function ask(i)
  local c, n = request(ARGV[2 * i]), load(KEYS[i + 1], ARGV[2 * count + 1 + i], count == 1 and v)
  local refused, queues = judge(n, c)
  if not refused then
    refused = take(n, c)
  elseif queues then
    refused[2] = queue(n, c)
  end
  save(n)
  return refused
end
for i = 1, count do
  if not all[i] then
    local ok, r = pcall(ask, i) -- a key that holds something else spoils no other claim
    all[i] = ok and r or {'failed', type(r) == 'table' and r.err or tostring(r)}
  end
end
return count == 1 and all[1] or all
