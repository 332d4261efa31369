#!lua flags=allow-oom
-- redlock/renew.lua: proves claims; quorum.Node.Renew.
--
-- KEYS, ARGV  see lib.lua
--
-- Replies, for each claim
--   "mine <counter> <counter before> <took over>"
--   behind, counter               the claim has the name, under a smaller counter
--   free                          nobody has the name, and the counter is smaller
--   held [, closed for, ID, holder...]
--   failed, message               only this one
-- or novote
--
-- It runs also when memory is out: a renewal that fails then would end locks.
--#lib
local all = {}
for i = 1, count do
  local c = claim(i)
  -- A key that holds something else spoils no other claim.
  local ok, n = pcall(name, i)
  if not ok then
    all[i] = {'failed', type(n) == 'table' and n.err or tostring(n)}
  elseif mine(n, c) and (c.fence == 0 or n.c == c.fence) then
    extend(n, c)
    save(n)
    all[i] = 'mine ' .. digits(n.c) .. ' ' .. digits(n.prev) .. ' ' .. n.took
  elseif mine(n, c) and n.c < c.fence then
    all[i] = {'behind', digits(n.c)}
  elseif n.s == 'f' and n.c < c.fence then
    all[i] = {'free'}
  else
    all[i] = other(n, 'held')
  end
end
return all
