-- lib.lua: the rules of one name, for every script of the line. It is put in
-- place of a script's line "--#lib".
--
-- Needs, from the script: M, the key of the mark, J, the key of the journal or
-- false, and T, the reply to TIME or nil. Declares the time, the state of names and what may become of it.
--
-- A name's state is one string, {'d2', took, generation, line, tail, claim...}
-- packed: until when the next grant is told of a death (0: none), the fence of
-- the present generation of readers, whether there is a line (1 or 0), when the
-- last place of it dies, and the claims by token. Its line is beside it, in keys
-- of the same slot: name..':l', a list of IDs, first come first, and name..':p',
-- a hash of places by ID. Whatever is in the hash is in the list.
--
-- A claim that is alone on a name where nobody waits has a shorter form, which
-- costs the server little to make, to prove and to take away: 'f<seconds>
-- <microseconds> <request>', when it was granted, which is its token too, and its
-- request as it came, '<life> <grace> <length of ID> <ID> <claim, packed>'. From
-- each proof on the key is kept for its life, in milliseconds. The claim's TTL
-- ends when only the grace of that is left: so the key's own time is all that a
-- proof has to change. A life is a millisecond longer than TTL and grace, since
-- the server counts a key's time in whole ones.
--
-- An exclusive claim that others wait for has a shorter form too, so that most of
-- what a crowd does needs no state taken apart and put together again: 'h<until>
-- <tail> <granted> <heard> <state> <took over> ' and then what would be its form
-- if it were alone. So has its place, 'q<until> <number> <taken> <length of channel>
-- <channel> <request>'. Both are only of claims without Keep and Delay that take the
-- place of no other.
--
-- Claims, places and the claims of requests are one kind of array. In a place
-- TOKEN is its number, UNTIL its patience's end and GRANTED when it was taken.
-- Instants are microseconds of the server's clock, durations microseconds;
-- tokens, places and fences are strings of digits, never Lua numbers. Names in
-- capitals are constants, which script.go puts in.
local ID, TOKEN, FENCE, UNITS, CAP, STATE, UNTIL, GRANTED, HEARD, TTL = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local KEEP, DELAY, TOOK, DIED, CHAN, NOTE, FROM, PATIENCE, BARGING = 11, 12, 13, 14, 15, 16, 17, 18, 19
local HELD, HANDED, KEPT, DRAINING, REVOKED, WAITING = 1, 2, 3, 4, 5, 6
local UNLIMITED = 2147483647 -- the capacity of a shared claim
local HANDOVER = 2000000     -- how long a claim handed over lives until it is heard of
local MAXDEAD = 64           -- how many dead places one call removes
local JOURNAL = 10000        -- how many events the journal keeps, about

local call, try = redis.call, redis.pcall
T = T or call('TIME')
local now = T[1] * 1000000 + T[2]

-- write is call, and notes that this step has changed something.
local wrote = false
local function write(...)
  local r = call(...)
  wrote = true
  return r
end

-- fault is why a step about the name at key has failed, as the text of an error
-- reply: it names the key that holds something else than it should. A step that has
-- changed something before it failed is certain of nothing.
local function fault(r, key)
  local text = type(r) == 'table' and r.err or tostring(r)
  if string.find(text, '^WRONGTYPE Operation') then
    if type(try('GET', key)) ~= 'table' then
      key = key .. (type(try('LINDEX', key .. ':l', 0)) == 'table' and ':l' or ':p')
    end
    text = 'WRONGTYPE the key ' .. key .. ' holds something else than what belongs to a lock'
  end
  return wrote and 'PARTLY ' .. text or text
end

local function digits(x) return string.format('%d', x) end -- a whole number below 2^53; '%.0f' takes twice as long
local function millis(x) return digits(math.ceil(x / 1000)) end

-- less compares two numbers that are strings of digits.
local function less(a, b)
  if #a ~= #b then return #a < #b end
  return a < b
end

-- number draws a number that was never given out on this server: the mark's
-- successor, and at least the time. The mark is raised with it, since a name's
-- state can expire with nobody watching.
local function number()
  local new = T[1] .. string.format('%06d', T[2])
  local mark = try('SET', M, new, 'GET')
  if not mark then return new end
  local number = type(mark) == 'string' and string.find(mark, '^%d+$')
  if number and less(mark, new) then return new end
  if type(mark) == 'string' then call('SET', M, mark) end
  if not number or type(try('INCR', M)) == 'table' then
    error({err = type(mark) == 'table' and not string.find(mark.err, '^WRONGTYPE') and mark.err or 'NOMARK the key ' .. M .. ' holds no number from which tokens can be drawn'})
  end
  return call('GET', M)
end

-- tell publishes to the client that has claim h, when n is saved. It does not matter
-- whether it arrives, nor whether this user may publish: what is published is a hint.
local function tell(n, h, what)
  if h[CHAN] ~= '' then table.insert(n.told, {'PUBLISH', h[CHAN], what .. ' ' .. #h[ID] .. ' ' .. h[ID] .. n.key}) end
end

-- log writes to the journal what happened to h, when n is saved.
local function log(n, kind, h, revocation)
  if not J then return end
  local r = revocation or {now = 0, reason = ''}
  local took = (kind == 1 or kind == 2) and h[TOOK] or 0
  table.insert(n.told, {'XADD', J, 'MAXLEN', '~', JOURNAL, '0-*', 'at', digits(now), 'kind', kind, 'name', n.name, 'token', h[TOKEN],
    'fence', h[FENCE], 'units', h[UNITS], 'capacity', h[CAP], 'took', took, 'now', r.now, 'note', h[NOTE], 'reason', r.reason})
end
local GRANTS, HANDS, RELEASES, EXPIRES, REVOKES = 1, 2, 3, 4, 5

-- join makes a token of its halves, seconds and microseconds.
local function join(s, us)
  if s == '0' then return us end
  return s .. string.sub('00000' .. us, -6)
end

-- raws has claims as they were asked for, as long as that is all there is to say of
-- them.
local raws = {}

-- request reads a claim as it is asked for, from the byte at on.
local function request(r, at)
  if at then r = string.sub(r, at) end
  local length, from = string.match(r, '^%d+ %d+ (%d+) ()')
  local c = cmsgpack.unpack(string.sub(r, from + length + 1))
  c[ID] = string.sub(r, from, from + length - 1)
  if c[UNITS] == c[CAP] and c[FROM] == '' and c[KEEP] == 0 and c[DELAY] == 0 then raws[c] = r end
  return c
end

-- short reads a claim in its short form.
local function short(n, v)
  local s, us, at, grace = string.match(v, '^f(%d+) (%d+) ()%d+ (%d+) ')
  local c, token = request(v, at), join(s, us)
  local granted, ends = tonumber(token), call('PEXPIRETIME', n.key)
  c[TOKEN], c[GRANTED], c[HEARD], c[UNTIL] = token, granted, granted, (ends - grace) * 1000
  if ends < 0 then -- somebody has taken the key's time away
    c[UNTIL], n.dirty = now + c[TTL], true
  end
  if c[UNITS] == c[CAP] then
    c[FENCE] = token
  elseif c[CAP] == UNLIMITED then
    c[FENCE], n.gen = token, token
  else
    c[FENCE] = '0'
  end
  n.stored, n.claims[1] = true, c
  return n
end

-- wanted reads the state of a name that others wait for.
local function wanted(n, v)
  local ends, tail, granted, heard, state, took, s, us, at = string.match(v, '^h(%d+) (%d+) (%d+) (%d+) (%d) (%d) f(%d+) (%d+) ()')
  local c = request(v, at)
  c[TOKEN] = join(s, us)
  c[FENCE], c[STATE], c[UNTIL], c[GRANTED] = c[TOKEN], tonumber(state), tonumber(ends), tonumber(granted)
  c[HEARD], c[TOOK], n.tail = tonumber(heard), tonumber(took), tonumber(tail)
  n.stored, n.line, n.claims[1] = true, 1, c
  return n
end

-- load reads the state of the name at key, which is v if that is known.
local function load(key, name, v)
  local n = {key = key, name = name, claims = {}, took = 0, gen = '', line = 0, tail = 0, places = {}, told = {}}
  v = v or call('GET', key)
  if not v then return n end
  local form = string.sub(v, 1, 1)
  if form == 'f' or form == 'h' then
    local ok = pcall(form == 'f' and short or wanted, n, v)
    if ok then return n end
  end
  local ok, s = pcall(cmsgpack.unpack, v)
  if not ok or type(s) ~= 'table' or s[1] ~= 'd2' then
    error({err = 'WRONGTYPE the key ' .. key .. ' holds something else than the state of a lock'})
  end
  n.stored, n.took, n.gen, n.line, n.tail = true, s[2], s[3], s[4], s[5]
  for i = 6, #s do n.claims[i - 5] = s[i] end
  return n
end

-- kept is the end of h's Keep. A claim that was not heard of has none.
local function kept(h)
  if h[HEARD] == 0 then return 0 end
  return h[HEARD] + h[KEEP]
end

-- gone is when h takes up no units any more if nobody acts.
local function gone(h)
  local s = h[STATE]
  if s == DRAINING or s == KEPT and h[DIED] == 0 then return h[UNTIL] end
  if s == KEPT then return h[UNTIL] + h[DELAY] end
  return math.max(h[UNTIL], kept(h)) + h[DELAY]
end

-- tomb is how long a death is remembered for the next grant.
local function tomb(h) return math.max(2000000, math.min(h[TTL], 60000000)) end

-- keep writes n. It lives until nothing of it matters.
local function keep(n)
  if #n.claims == 0 and n.line == 1 and not call('LINDEX', n.key .. ':l', 0) then
    n.line, n.tail = 0, 0 -- whoever was handed the name last has died
  end
  if #n.claims == 0 and n.line == 0 and n.took <= now then
    if n.stored then write('DEL', n.key) end
    return
  end
  local far, h = math.max(n.took, n.tail), n.claims[1]
  if n.line == 1 and n.took == 0 and #n.claims == 1 and raws[h] and h[DIED] == 0 and (h[STATE] == HELD or h[STATE] == HANDED) then
    local v = string.format('h%d %d %d %d %d %d f%s %d ', h[UNTIL], n.tail, h[GRANTED], h[HEARD], h[STATE], h[TOOK],
      string.sub(h[TOKEN], 1, -7), string.sub(h[TOKEN], -6) + 0) .. raws[h]
    write('SET', n.key, v, 'PXAT', millis(math.max(far, h[UNTIL] + tomb(h))))
    return
  end
  local s = {'d2', n.took, n.gen, n.line, n.tail}
  for i, h in ipairs(n.claims) do
    s[i + 5] = h
    local last = gone(h)
    if h[STATE] ~= KEPT or h[DIED] == 1 then last = last + tomb(h) end
    if last > far then far = last end
  end
  write('SET', n.key, cmsgpack.pack(s), 'PXAT', millis(far))
end

-- save writes n if it was changed, and then tells of that.
local function save(n)
  if n.dirty then keep(n) end
  for _, m in ipairs(n.told) do try(unpack(m)) end
end

local function remove(n, h)
  for i, o in ipairs(n.claims) do
    if o == h then table.remove(n.claims, i) break end
  end
  n.dirty = true
end

-- ended moves h on until its time is not up, and tells whether it is gone. Only
-- here does the clock end a claim.
local function ended(n, h)
  while now >= h[UNTIL] do
    n.dirty = true
    local s = h[STATE]
    if s == KEPT and h[DIED] == 0 or s == DRAINING then return true end
    if s == KEPT then
      h[STATE], h[UNTIL] = DRAINING, h[UNTIL] + h[DELAY]
    else
      n.took = math.max(n.took, now + tomb(h))
      log(n, EXPIRES, h)
      if s ~= REVOKED then tell(n, h, 'lost') end
      local k = kept(h)
      if k > h[UNTIL] then
        h[STATE], h[UNTIL], h[DIED] = KEPT, k, 1
      else
        h[STATE], h[UNTIL] = DRAINING, h[UNTIL] + h[DELAY]
      end
    end
  end
  return false
end

-- finish ends what has ended.
local function finish(n)
  for i = #n.claims, 1, -1 do
    if now >= n.claims[i][UNTIL] and ended(n, n.claims[i]) then table.remove(n.claims, i) end
  end
end

-- granted returns the claim with this ID that was not ended: held, handed or
-- revoked.
local function granted(n, id)
  if id == '' then return nil end
  for _, h in ipairs(n.claims) do
    if h[ID] == id and h[STATE] ~= KEPT and h[STATE] ~= DRAINING then return h end
  end
end

-- held returns the claim with this ID if its holder may still act on it.
local function held(n, id)
  local h = granted(n, id)
  if h and h[STATE] ~= REVOKED then return h end
end

-- shrinks tells whether c is a conversion that always succeeds: to fewer units
-- of the same capacity, or from exclusive to anything.
local function shrinks(n, c)
  local from = held(n, c[FROM])
  return from and (from[UNITS] == from[CAP] or from[CAP] == c[CAP] and c[UNITS] < from[UNITS])
end

-- room is the rule of fit without its line: whether c can be live together with
-- what is live. The claim that c replaces is not in its way.
local function room(n, c)
  local from = c[FROM] ~= '' and held(n, c[FROM])
  local units, smallest, some = 0, c[CAP], false
  for _, h in ipairs(n.claims) do
    if h ~= from then
      if h[UNITS] == h[CAP] then return false end
      some, units, smallest = true, units + h[UNITS], math.min(smallest, h[CAP])
    end
  end
  if not some then return true end
  return c[UNITS] ~= c[CAP] and units + c[UNITS] <= smallest
end

-- grant makes c, a request or a place, a claim under a new token, in the place
-- of the one that it replaces.
local function grant(n, c, state, lives)
  c[TOKEN], c[STATE], c[GRANTED], c[UNTIL], c[HEARD], c[DIED] = number(), state, now, now + lives, 0, 0
  if c[UNITS] == c[CAP] then
    c[FENCE] = c[TOKEN]
  elseif c[CAP] == UNLIMITED then
    local first = true
    for _, h in ipairs(n.claims) do
      if h[CAP] == UNLIMITED and h[UNITS] == 1 then first = false end
    end
    if first then n.gen = c[TOKEN] end -- the first of a generation
    c[FENCE] = n.gen
  else
    c[FENCE] = '0'
  end
  c[TOOK], n.took = n.took > 0 and 1 or 0, 0
  local from = held(n, c[FROM])
  if from then
    log(n, RELEASES, from)
    remove(n, from)
    c[HEARD] = from[HEARD]
  end
  n.claims[#n.claims + 1] = c
  n.dirty = true
end

-- prove makes h live for ttl from now; it never shortens.
local function prove(n, h, ttl)
  if ttl ~= h[TTL] then raws[h] = nil end
  h[STATE], h[TTL] = HELD, ttl
  h[UNTIL] = math.max(h[UNTIL], now + ttl)
  if h[HEARD] == 0 then h[HEARD] = now end
  n.dirty = true
end

-- shown is h as an operator sees it.
local function shown(h)
  return string.format('%d %s %s %d %d %d %d %d ', h[STATE], h[TOKEN], h[FENCE], h[UNITS], h[CAP],
    now - h[GRANTED], h[UNTIL] - now, h[TTL]) .. h[NOTE]
end

-- The replies. The first element tells which it is.
local function grants(h) return {'granted ' .. h[TOKEN] .. ' ' .. h[FENCE] .. ' ' .. h[TOOK]} end
local function nothing(n)
  local h = n.claims[#n.claims]
  return {'nothing', h and shown(h)}
end
local function holds(h, soon, reserved, deadlock, number)
  local retry = string.format('held %d %d %d', math.max(1000, soon - now), reserved and 1 or 0, deadlock and 1 or 0)
  return {retry, number, h and shown(h)}
end
local function revoked() return {'revoked'} end
