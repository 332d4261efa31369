#!lua
-- acquire.lua: asks once for claims, each by itself.
--
-- KEYS[1]      the mark
-- KEYS[2...]   the names, one for each claim, not distinct
-- KEYS[last]   the journal, if it is on
-- ARGV[1]      how many claims there are
-- ARGV[2...]   for each the claim, as a request (see lib.lua), then its life (see
--              lib.lua); '': it replaces another
-- ARGV[...]    then of a claim alone, if it may wait and has a short form for that,
--              "<patience> <length of channel> <channel> ", or ''
-- ARGV[...]    then the names in plain, if the journal is on
--
-- Replies, for each claim; if there is one, this alone
--   token, a number                          the name was idle
--   "granted <token> <fence> <took over>"
--   "held <retry after> <reserved> <deadlock>", place [, holder]
--   "waits <seconds> <microseconds>", place, state    it is the name's in short form, at this time
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
  local token, head = first, 'f' .. s .. ' '
  local K, A, try = KEYS, ARGV, redis.pcall -- globals are slower
  for i = 1, count do
    local life = A[2 * i + 1]
    v = life ~= '' and try('SET', K[i + 1], head .. us .. ' ' .. A[2 * i], 'PX', life, 'NX', 'GET')
    if life == '' then
      -- It takes more.
    elseif not v then
      all[i], token, slow = token, token + 1, slow - 1
      if i < count then
        us = us + 1
        if us == 1000000 then
          s, us = s + 1, 0
          head = 'f' .. s .. ' '
        end
      end
    elseif type(v) == 'table' then
      v = false -- the rules find out why
    end
  end
  if token > first then
    local mark = try('SET', M, string.format('%d', token - 1), 'GET')
    -- The clock is behind, or that is no mark: as if nothing had been tried.
    if mark and not (type(mark) == 'string' and first > (tonumber(mark) or first)) then
      if type(mark) == 'string' then redis.call('SET', M, mark) end
      for i = 1, count do
        if type(all[i]) == 'number' then
          local undone = try('DEL', KEYS[i + 1])
          if type(undone) == 'table' then
            all[i] = {'failed', 'PARTLY ' .. undone.err}
          else
            all[i], slow = nil, slow + 1
          end
        end
      end
    end
  end
  if slow == 0 then return count == 1 and all[1] or all end
  -- The next usual case: another has the name, and this one goes to the end of the
  -- line. It is what judge and queue do if that claim lives, has a short form for
  -- others that wait and is not this one, and the line's keys last for long enough.
  local form = count == 1 and ARGV[4] ~= '' and v and string.sub(v, 1, 1)
  if form == 'h' or form == 'f' then
    local r, key = ARGV[2], KEYS[2]
    local own, from = string.match(r, '^%d+ %d+ (%d+) ()')
    local patience, to = string.match(ARGV[4], '^(%d+) ()')
    local id, lasts = string.sub(r, from, from + own - 1), first + patience
    local ends, tail, granted, grace, length, at = -1, 0, nil, 0, 0, 0
    if form == 'h' then
      ends, tail, length, at = string.match(v, '^h(%d+) (%d+) %d+ %d+ %d %d f%d+ %d+ %d+ %d+ (%d+) ()')
    else
      -- Nobody else waits. That the claim is of one unit of one, without Keep and
      -- Delay, is seen from how it is packed.
      local seconds, micros
      seconds, micros, grace, length, at = string.match(v, '^f(%d+) (%d+) %d+ (%d+) (%d+) ()')
      local packed = at + length + 1
      if string.sub(v, packed, packed + 12) == '\220\0\19\160\160\160\1\1\1\0\0\0\207' and string.sub(v, packed + 21, packed + 22) == '\0\0' then
        ends, tail = (redis.call('PEXPIRETIME', key) - grace) * 1000, lasts + patience / 2
        granted = seconds .. string.sub('00000' .. micros, -6)
      end
    end
    if first < ends + 0 and lasts <= tail + 0 and string.sub(v, at, at + length - 1) ~= id then
      local number = s .. string.sub('00000' .. us, -6)
      local mark = try('SET', M, number, 'GET')
      if mark and not (type(mark) == 'string' and first > (tonumber(mark) or first)) then -- as above
        if type(mark) == 'string' then redis.call('SET', M, mark) end
      else
        local l, p = key .. ':l', key .. ':p'
        if granted then
          v = string.format('h%d %d ', ends, tail) .. granted .. ' ' .. granted .. ' 1 0 ' .. v
          redis.call('SET', key, v, 'PXAT', string.format('%d', math.ceil(math.max(tail, ends + grace * 1000) / 1000)))
          redis.call('DEL', l)
        end
        local place = 'q' .. string.format('%d', lasts) .. ' ' .. number .. ' ' .. number .. ' ' .. string.sub(ARGV[4], to) .. r
        local waits = {'waits ' .. s .. ' ' .. us, number, v}
        local length = try('RPUSH', l, id)
        if length == 1 then try('DEL', p) end -- a new line
        local put = type(length) == 'number' and try('HSETNX', p, id, place)
        if put == 1 and length == 1 then
          local ms = string.format('%d', math.ceil(tail / 1000))
          local ends = {try('PEXPIREAT', l, ms), try('PEXPIREAT', p, ms)}
          for _, e in ipairs(ends) do
            if type(e) == 'table' then return {'failed', 'PARTLY ' .. e.err} end
          end
        end
        if put == 1 then return waits end
        if put then redis.call('RPOP', l) end -- it has a place already, or there can be none
      end
    end
  end
end
--#lib
local function ask(i)
  wrote = false
  local c, n = request(ARGV[2 * i]), load(KEYS[i + 1], ARGV[2 * count + (count == 1 and 2 or 1) + i], count == 1 and v)
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
    all[i] = ok and r or {'failed', fault(r, KEYS[i + 1])}
  end
end
return count == 1 and all[1] or all
