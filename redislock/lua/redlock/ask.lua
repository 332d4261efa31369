#!lua
-- redlock/ask.lua: the first request of a claim; quorum.Node.Ask.
--
-- KEYS, ARGV  see lib.lua; one claim
--
-- Replies  "mine <counter> <counter before> <took over>"
--          other                       the ID stands for another claim
--          held, closed for, ID, holder...
--          novote
-- A holder is state, counter, units, age, left, TTL, note.
--
-- It may not run out of memory: what it adds has to be refused then.
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
