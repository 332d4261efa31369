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
local call = redis.call
local node = call('HMGET', KEYS[1], 'id', 'base', 'hi', 'longest')
if node[1] ~= ARGV[1] then return {'novote'} end
local T = call('TIME')
local all, slow = {}, not not KEYS[3 + ARGV[2]]
if not slow then
  -- The usual case: the claims have their names, under their tokens.
  local now = T[1] * 1000000 + T[2]
  for i = 1, tonumber(ARGV[2]) do
    local v = redis.pcall('GET', KEYS[i + 2])
    local c, till, rest, at = string.match(type(v) == 'string' and v or '', '^h(%d+) (%d+) (%d+ %d %d %d+ )()')
    local fence, ttl, from = string.match(ARGV[i + 2], '^(%d+) ()(%d+) ')
    local mine = c == fence and now < tonumber(till) and string.match(string.sub(v, at), '^%d+ %d+ %d+ %d+ %d+ (%d+:.*)$')
    -- The same client, ID and note, whatever the attempt: the same claim.
    if mine and mine == string.match(ARGV[i + 2], '^%d+ %d+ %d+ %d+ %d+ %d+ (%d+:.*)$') then
      local long = now + from
      if long < tonumber(till) then long = tonumber(till) end
      call('SET', KEYS[i + 2], 'h' .. c .. ' ' .. string.format('%.0f', long) .. ' ' .. rest .. string.sub(v, at))
      local took, prev = string.match(rest, '^%d+ %d (%d) (%d+) ')
      all[i] = 'mine ' .. c .. ' ' .. prev .. ' ' .. took
    else
      slow = true
      all[i] = false
    end
  end
  if not slow then return all end
end
--#lib
for i = 1, count do
  local c = claim(i)
  -- A key that holds something else spoils no other claim.
  local ok, n = pcall(name, i)
  if all[i] then
    -- proved above
  elseif not ok then
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
