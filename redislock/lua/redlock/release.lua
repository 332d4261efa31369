#!lua flags=allow-oom
-- redlock/release.lua: gives back claims; quorum.Node.Release.
--
-- KEYS, ARGV  see lib.lua; a fence of 0 takes an attempt back, whatever its
--             counter, unless the same client has asked again since
-- ARGV[last]  one letter for each claim:
--             f  frees; k  keeps what its Keep says; s  frees, and brings the
--             counter up to the fence, which other nodes know; u  brings it up
--             to that if the name is free
--
-- Replies  "mine <counter> 0 0", for one claim, or for each
--   mine                          it was, and is no longer
--   behind, counter [, closed for, ID, holder...]
--                                 it is, under a smaller counter; or nobody has
--                                 the name, and the counter is smaller
--   held [, closed for, ID, holder...]
-- or novote
--
-- It runs also when memory is out: what is given back makes room.
local FORGETS = 64 -- one call of so many forgets
local call = redis.call
if call('HGET', KEYS[1], 'id') ~= ARGV[1] then return {'novote'} end
local T = call('TIME')
if ARGV[2] == '1' and ARGV[5] == 'f' and not KEYS[4] and T[2] % FORGETS > 0 then
  -- The usual case: the claim has its name, under its token.
  local mine, v = 'h' .. ARGV[3], call('GET', KEYS[3])
  if v and string.sub(v, 1, #mine) == mine then
    local now = T[1] * 1000000 + T[2]
    if now < string.match(v, '^(%d+) ', #mine + 1) + 0 then
      local c = string.match(ARGV[3], '^%d+')
      call('SET', KEYS[3], 'f' .. c .. string.format(' 0 %d', now))
      return 'mine ' .. c .. ' 0 0'
    end
  end
end
local node = call('HMGET', KEYS[1], 'id', 'base', 'hi', 'longest')
--#lib
local all = {}
for i = 1, count do
  local n, c, how = name(i), claim(i), string.sub(ARGV[2 * count + 3], i, i)
  local ours, dirty = mine(n, c) or revoked(n, c), false
  if c.fence == 0 then
    -- An attempt is no longer one that was granted once, and then revoked.
    ours = mine(n, c) and (n.client ~= c.client or n.number <= c.number)
  elseif how == 's' then
    ours = ours and n.c <= c.fence
  else
    ours = ours and n.c == c.fence
  end
  if ours then
    all[i] = {'mine'}
    n.was = n.id
    local kept = n.granted + n.keep
    -- An attempt that is taken back has told nobody of a death before it, and leaves
    -- a counter that another node may have granted: how that ended is not known here.
    n.died = 0
    if c.fence == 0 then n.died = n.took == 1 and 1 or 2 end
    if how == 'k' and kept > now then n.s, n.till = 'k', kept else free(n, now) end
    dirty = true
  elseif how ~= 's' and (mine(n, c) or n.s == 'f') and n.c < c.fence then
    all[i] = behind(n)
  else
    all[i] = other(n, 'held')
  end
  if (how == 's' or how == 'u' and n.s == 'f') and n.c < c.fence and not n.foreign then
    n.c, dirty = c.fence, true
  end
  if dirty then save(n) end
end

-- forget forgets names that nobody has used for a while, a few at a time. The
-- counters of names that are not known start from base, which is raised first.
local function forget()
  local idle = tonumber(call('HGET', KEYS[1], 'idle'))
  local base = tonumber(node[2])
  for _, key in ipairs(call('ZRANGE', KEYS[2], '-inf', digits(now - idle), 'BYSCORE', 'LIMIT', 0, 128)) do
    local ok, n = pcall(load, key)
    if not ok or n.new then
      call('ZREM', KEYS[2], key)
    elseif n.s == 'f' and now - n.since >= idle then
      if n.c > base then
        base = n.c
        call('HSET', KEYS[1], 'base', digits(base))
      end
      call('DEL', key)
      call('ZREM', KEYS[2], key)
    else
      call('ZADD', KEYS[2], digits(now), key)
    end
  end
end
if T[2] % FORGETS == 0 then forget() end
return all
