#!lua
-- redlock/ask.lua: the first request of a claim; quorum.Node.Ask.
--
-- KEYS, ARGV  see lib.lua; one claim, and then its TTL, and for how long it closes
--             the name
--
-- Replies  "mine <counter> <counter before> <took over>"
--          other                       the ID stands for another claim
--          held, closed for, ID, holder...
--          novote
-- A holder is state, counter, units, age, left, TTL, note.
--
-- It may not run out of memory: what it adds has to be refused then.
local AHEAD = 1000 -- how far ahead hi is raised
local call = redis.call
local node = call('HMGET', KEYS[1], 'id', 'base', 'hi', 'longest')
if node[1] ~= ARGV[1] then return {'novote'} end
local T = call('TIME')
if not KEYS[4] then
  -- The usual case: the name is free, and known to be.
  local key = KEYS[3]
  local v = call('GET', key)
  local prev, died = string.match(v or '', '^f(%d+) (%d) ')
  local new = not v and node[2]
  if (prev or new) and ARGV[6] + 0 <= node[4] + 0 then
    prev, died = prev or new, died or '0'
    local c, now = prev + 1, T[1] * 1000000 + T[2]
    local held = string.format('h%d ', c)
    if c > node[3] + 0 then call('HSET', KEYS[1], 'hi', string.format('%d', c + AHEAD)) end
    if new then call('ZADD', KEYS[2], T[1] .. '000000', key) end -- which may fail
    call('SET', key, held .. string.sub(ARGV[3], 3) .. string.format('%d %d 0 %s %s ', now + ARGV[5], now, died, prev) .. ARGV[4])
    return 'mine ' .. string.sub(held, 2) .. prev .. ' ' .. died
  end
end
--#lib
local n, c = name(1), claim(1)
if mine(n, c) then
  if n.units ~= c.units then return 'other' end
  extend(n, c)
  n.client, n.number = c.client, c.number
elseif n.s == 'f' then
  n.prev, n.c = n.c, n.c + 1
  take(n, c)
else
  return other(n, 'held')
end
save(n)
return 'mine ' .. digits(n.c) .. ' ' .. digits(n.prev) .. ' ' .. n.took
