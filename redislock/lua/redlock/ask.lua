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
local call = redis.call
local node = call('HMGET', KEYS[1], 'id', 'base', 'hi', 'longest')
if node[1] ~= ARGV[1] then return {'novote'} end
local T = call('TIME')
if not KEYS[4] then
  -- The usual case: the name is free, and known to be.
  local key = KEYS[3]
  local v = call('GET', key)
  local c, died = string.match(v or '', '^f(%d+) (%d) ')
  local new = not v and node[2]
  if (c or new) and tonumber(ARGV[5]) <= tonumber(node[4]) then
    local now, prev = T[1] * 1000000 + T[2], c or new
    died = died or '0'
    c = string.format('%.0f', prev + 1)
    call('SET', key, 'h' .. c .. ' ' .. string.format('%.0f %.0f', now + ARGV[4], now) .. ' 0 ' .. died .. ' ' .. prev .. ' ' ..
      string.sub(ARGV[3], 3))
    if new then call('ZADD', KEYS[2], T[1] .. '000000', key) end
    if tonumber(c) > tonumber(node[3]) then call('HSET', KEYS[1], 'hi', c) end
    return 'mine ' .. c .. ' ' .. prev .. ' ' .. died
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
