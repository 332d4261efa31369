-- redlock/lib.lua: what one node of a quorum knows, for all its scripts. It is
-- put in place of a script's line "--#lib". The rules are those of package
-- internal/quorum; here they have times to live.
--
-- KEYS[1]      the node's own hash: id, its marker, without which it does not
--              vote; base, from which names start that it does not know; hi, which
--              no counter that it ever gave is larger than (it is raised by more
--              than it has to be, so that it seldom is); longest, for how long a
--              name was closed at most; idle, after how long a free name is
--              forgotten
-- KEYS[2]      the names that it knows, by when they were last looked at
-- KEYS[3...]   one key for each claim: the name's state
-- KEYS[...]    in the plain layout then the keys that other programs lock, in the
--              same order
-- ARGV[1]      the marker that the client knows
-- ARGV[2]      how many claims there are
-- ARGV[3...]   the claims, two strings each: '<fence, 0: any> <who> ' and <what>
--
-- Who asks is '<length of client>:<client><length of ID>:<ID>', and what for '<TTL>
-- <keep> <delay> <units> <number of the attempt> <note>'. A name's state is a
-- string: 'f<counter> <died> <since>' if it is free, or else '<state><counter>
-- <who> <until> <granted> <died> <took> <counter before> <what>', where the state
-- is h (held), r (held, but revoked), k (kept after a release), K (kept after a
-- death) or d (draining). So
-- that a claim has its name under its fence can be told from how the state begins.
-- Died tells whether the claim that had the counter has died (1), not (0), or
-- whether there was none (2), and took the same of the one before.
-- Instants are microseconds of the node's clock, and counters are below 2^53.
--
-- A script defines all of this anew whenever it runs. So each looks first whether
-- it has the usual case before it, in which it needs none of it.
local count = tonumber(ARGV[2])
local now = T[1] * 1000000 + T[2]

local AHEAD = 1000 -- how far ahead hi is raised

local function digits(x) return string.format('%d', x) end -- a whole number below 2^53; '%.0f' takes twice as long

-- named reads who asks into n, and returns where what follows begins in v.
local function named(n, v, at)
  local function word()
    local size, from = string.match(v, '^(%d+):()', at)
    if not size then return nil end
    at = from + size
    return string.sub(v, from, at - 1)
  end
  n.client, n.id = word(), word()
  return n.id and at + 1
end

-- parse reads into n what a claim is for, from the byte at on.
local function parse(n, v, at)
  local ttl, keep, delay, units, number, from = string.match(v, '^(%d+) (%d+) (%d+) (%d+) (%d+) ()', at)
  if not ttl then return nil end
  n.ttl, n.keep, n.delay, n.units, n.number = tonumber(ttl), tonumber(keep), tonumber(delay), tonumber(units), tonumber(number)
  n.note = string.sub(v, from)
  return n
end

-- who and what write the claim in n.
local function who(n) return #n.client .. ':' .. n.client .. #n.id .. ':' .. n.id .. ' ' end
local function what(n)
  return digits(n.ttl) .. ' ' .. digits(n.keep) .. ' ' .. digits(n.delay) .. ' ' .. digits(n.units) .. ' ' .. digits(n.number) .. ' ' .. n.note
end

-- free makes n free, as of an instant.
local function free(n, since)
  n.s, n.since, n.id = 'f', since, ''
end

-- ended moves n on until its time is not up: only here does the clock end a claim.
local function ended(n)
  while n.s ~= 'f' and now >= n.till do
    if n.s == 'h' or n.s == 'r' then
      n.died = 1
      local kept = n.granted + n.keep
      if kept > n.till then n.s, n.till = 'K', kept else n.s, n.till = 'd', n.till + n.delay end
    elseif n.s == 'K' then
      n.s, n.till = 'd', n.till + n.delay
    else
      free(n, n.till)
    end
  end
end

-- stranger looks at the key that other programs lock. What ours says has ended if
-- that key does not say so too.
local function stranger(n)
  local v = call('GET', n.plain)
  if n.s ~= 'f' and v ~= n.id then free(n, now) end
  if n.s ~= 'f' or not v then return end
  local left = call('PTTL', n.plain)
  if left < 0 then error({err = 'FOREIGN the key ' .. n.plain .. ' has no time to live'}) end
  n.s, n.id, n.note, n.units, n.granted, n.ttl, n.keep, n.delay = 'h', v, 'another program', 1, now, left * 1000, 0, 0
  n.till, n.foreign = now + left * 1000, true
end

-- load reads the state of the name at key, which other programs lock at plain, if
-- that is given.
local function load(key, plain)
  local n = {key = key, plain = plain}
  local v, at = call('GET', n.key), nil
  if not v then
    n.c, n.died, n.new = tonumber(node[2]), 0, true
    free(n, now)
  elseif string.sub(v, 1, 1) == 'f' then
    n.c, n.died, n.since = string.match(v, '^f(%d+) (%d) (%d+)$')
    n.s, n.id = 'f', ''
  else
    n.s, n.c, at = string.match(v, '^([hrkKd])(%d+) ()')
    at = at and named(n, v, at)
    if at then n.till, n.granted, n.died, n.took, n.prev, at = string.match(v, '^(%d+) (%d+) (%d) (%d) (%d+) ()', at) end
    if at and parse(n, v, at) then
      n.till, n.granted, n.took, n.prev = tonumber(n.till), tonumber(n.granted), tonumber(n.took), tonumber(n.prev)
    else
      n.s = nil
    end
  end
  if not n.s or not n.c then error({err = 'WRONGTYPE the key ' .. n.key .. ' holds something else than the state of a lock'}) end
  n.c, n.died = tonumber(n.c), tonumber(n.died)
  ended(n)
  if n.plain then stranger(n) end
  return n
end

-- closed is for how long the name stays taken if nobody acts.
local function closed(n)
  if n.s == 'h' or n.s == 'r' then return math.max(n.till, n.granted + n.keep) + n.delay - now end
  if n.s == 'K' then return n.till + n.delay - now end
  return n.till - now
end

-- save writes n. What may fail comes first, and does no harm by itself.
local function save(n)
  if n.new then call('ZADD', KEYS[2], digits(now), n.key) end
  if n.c > tonumber(node[3]) then
    node[3] = n.c + AHEAD
    call('HSET', KEYS[1], 'hi', digits(node[3]))
  end
  if n.s == 'f' then
    call('SET', n.key, 'f' .. digits(n.c) .. ' ' .. n.died .. ' ' .. digits(n.since))
    if n.plain and call('GET', n.plain) == n.was then call('DEL', n.plain) end
  else
    call('SET', n.key, n.s .. digits(n.c) .. ' ' .. who(n) .. digits(n.till) .. ' ' .. digits(n.granted) .. ' ' .. n.died .. ' ' .. n.took ..
      ' ' .. digits(n.prev) .. ' ' .. what(n))
    local long = closed(n)
    if n.plain then call('SET', n.plain, n.id, 'PX', digits(math.ceil(long / 1000))) end
    if long > tonumber(node[4]) then
      node[4] = long
      call('HSET', KEYS[1], 'longest', digits(long))
    end
  end
end

-- name is the state of the i-th name, and claim the i-th claim of the request.
local function name(i) return load(KEYS[i + 2], KEYS[i + 2 + count]) end
local function claim(i)
  local fence, at = string.match(ARGV[2 * i + 1], '^(%d+) ()')
  local c = {fence = tonumber(fence)}
  named(c, ARGV[2 * i + 1], at)
  return parse(c, ARGV[2 * i + 2], 1)
end

-- take gives the name to c.
local function take(n, c)
  n.s, n.id, n.till, n.granted, n.ttl, n.keep, n.delay, n.units, n.note = 'h', c.id, now + c.ttl, now, c.ttl, c.keep, c.delay, c.units, c.note
  n.took, n.died, n.client, n.number = n.died, 0, c.client, c.number
end

-- extend makes n live for c's TTL from now on; it never shortens.
local function extend(n, c)
  n.ttl, n.till = c.ttl, math.max(n.till, now + c.ttl)
end

-- mine tells whether c has the name.
local function mine(n, c) return n.s == 'h' and n.id == c.id and not n.foreign end

-- revoked tells whether c has the name, and it was taken away from it.
local function revoked(n, c) return n.s == 'r' and n.id == c.id end

-- other is what is in the way: how long at least, and whose it is.
local function other(n, word)
  if n.s == 'f' then return {word} end
  local state = ({h = '1', k = '3', K = '3', d = '4', r = '5'})[n.s]
  return {word, digits(closed(n)), n.id, state, n.foreign and '0' or digits(n.c), digits(n.units), digits(now - n.granted), digits(n.till - now), digits(n.ttl), n.note}
end

-- behind is the answer to a fence that the name's counter has not reached.
local function behind(n)
  local r = other(n, 'behind')
  table.insert(r, 2, digits(n.c))
  return r
end
