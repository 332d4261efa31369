-- lib.lua: the rules of one name, for every script of the line. It is put in
-- place of a script's line "--#lib".
--
-- Needs, from the script: M, the key of the mark, and J, the key of the journal
-- or false. Declares the time, the state of names and what may become of it.
--
-- A name's state is one string, {'d1', took, generation, line, tail, claim...}
-- packed: until when the next grant is told of a death (0: none), the fence of
-- the present generation of readers, whether there is a line (1 or 0), when the
-- last place of it dies, and the claims by token. Its line is beside it, in keys
-- of the same slot: name..':l', a list of IDs, first come first, and name..':p',
-- a hash of places by ID. Whatever is in the hash is in the list.
--
-- A claim that is alone on a name where nobody waits has a shorter form, which
-- costs the server little to make, to prove and to take away:
-- 'f<token> <granted> <proved> <TTL> <life> <claim>', the claim packed as its
-- request was, and its life the milliseconds for which the key is kept from each
-- proof on.
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
local T = call('TIME')
local now = T[1] * 1000000 + T[2]

local function digits(x) return string.format('%.0f', x) end
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
  local mark = call('SET', M, new, 'GET')
  if mark and not less(mark, new) then
    call('SET', M, mark)
    call('INCR', M)
    new = call('GET', M)
  end
  return new
end

-- tell publishes to the client that has claim h. It does not matter whether it
-- arrives, nor whether this user may publish: what is published is a hint.
local function tell(n, h, what)
  if h[CHAN] ~= '' then try('PUBLISH', h[CHAN], what .. ' ' .. #h[ID] .. ' ' .. h[ID] .. n.key) end
end

-- log writes to the journal what happened to h.
local function log(n, kind, h, revocation)
  if not J then return end
  local r = revocation or {now = 0, reason = ''}
  local took = (kind == 1 or kind == 2) and h[TOOK] or 0
  try('XADD', J, 'MAXLEN', '~', JOURNAL, '0-*', 'at', digits(now), 'kind', kind, 'name', n.name, 'token', h[TOKEN],
    'fence', h[FENCE], 'units', h[UNITS], 'capacity', h[CAP], 'took', took, 'now', r.now, 'note', h[NOTE], 'reason', r.reason)
end
local GRANTS, HANDS, RELEASES, EXPIRES, REVOKES = 1, 2, 3, 4, 5

-- short reads a claim in its short form.
local function short(n, v)
  local token, granted, proved, at = string.match(v, '^f(%d+) (%d+) (%d+) %d+ %d+ ()')
  local c = cmsgpack.unpack(string.sub(v, at))
  c[TOKEN], c[GRANTED], c[HEARD], c[UNTIL] = token, tonumber(granted), tonumber(granted), proved + c[TTL]
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

-- load reads the state of the name at key, which is v if that is known.
local function load(key, name, v)
  local n = {key = key, name = name, claims = {}, took = 0, gen = '', line = 0, tail = 0}
  v = v or call('GET', key)
  if not v then return n end
  if string.sub(v, 1, 1) == 'f' then
    local ok = pcall(short, n, v)
    if ok then return n end
  end
  local ok, s = pcall(cmsgpack.unpack, v)
  if not ok or type(s) ~= 'table' or s[1] ~= 'd1' then
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

-- save writes n if it was changed. It lives until nothing of it matters.
local function save(n)
  if not n.dirty then return end
  if #n.claims == 0 and n.line == 0 and n.took <= now then
    if n.stored then call('DEL', n.key) end
    return
  end
  local far = math.max(n.took, n.tail)
  local s = {'d1', n.took, n.gen, n.line, n.tail}
  for i, h in ipairs(n.claims) do
    s[i + 5] = h
    local last = gone(h)
    if h[STATE] ~= KEPT or h[DIED] == 1 then last = last + tomb(h) end
    if last > far then far = last end
  end
  call('SET', n.key, cmsgpack.pack(s), 'PXAT', millis(far))
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

-- live tells whether place p is waited for. A place that grows needs its claim.
local function live(n, p) return p and now < p[UNTIL] and (p[FROM] == '' or held(n, p[FROM]) ~= nil) end

-- dies is when p is dead if nobody acts.
local function dies(n, p)
  local from = held(n, p[FROM])
  if from and from[UNTIL] < p[UNTIL] then return from[UNTIL] end
  return p[UNTIL]
end

local function place(n, id)
  local v = call('HGET', n.key .. ':p', id)
  return v and cmsgpack.unpack(v)
end

-- waiting returns the live place with this ID.
local function waiting(n, id)
  if n.line == 0 then return nil end
  local p = place(n, id)
  if live(n, p) then return p end
end

-- leave takes the place with this ID out of the line.
local function leave(n, id)
  if n.line == 1 and call('HDEL', n.key .. ':p', id) == 1 then call('LREM', n.key .. ':l', 1, id) end
end

-- patient keeps the line's keys until place p is dead.
local function patient(n, p)
  if p[UNTIL] <= n.tail then return end
  n.tail, n.dirty = p[UNTIL] + p[PATIENCE] / 2, true
  call('PEXPIREAT', n.key .. ':l', millis(n.tail))
  call('PEXPIREAT', n.key .. ':p', millis(n.tail))
end

-- refresh makes p wait for patience from now; it never shortens. What would
-- gain little is not worth a write.
local function refresh(n, p, patience)
  if now + patience - p[UNTIL] <= patience / 16 then return end
  p[UNTIL], p[PATIENCE] = now + patience, patience
  call('HSET', n.key .. ':p', p[ID], cmsgpack.pack(p))
  patient(n, p)
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
  h[STATE], h[TTL] = HELD, ttl
  h[UNTIL] = math.max(h[UNTIL], now + ttl)
  if h[HEARD] == 0 then h[HEARD] = now end
  n.dirty = true
end

-- rouse signals the first live place behind those that were removed.
local function rouse(n)
  for at = 0, 100000, 100 do
    local ids = call('LRANGE', n.key .. ':l', at, at + 99)
    if #ids == 0 then return end
    for _, v in ipairs(call('HMGET', n.key .. ':p', unpack(ids))) do
      local p = v and cmsgpack.unpack(v)
      if live(n, p) then return tell(n, p, 'ask ' .. p[TOKEN]) end
    end
  end
end

-- promote grants the leading places that fit, each for the hand-over TTL, and
-- signals their waiters. It follows every step that may let a place in. If it
-- comes to a live place that does not fit, that is n's head from then on.
local function promote(n)
  local dead = 0
  n.head = nil
  while n.line == 1 do
    local id = call('LINDEX', n.key .. ':l', 0)
    if not id then -- also if eviction has left the hash behind, whose places would never be handed anything
      n.line, n.tail, n.dirty = 0, 0, true
      call('DEL', n.key .. ':p')
      return
    end
    local p = place(n, id)
    local alive = live(n, p)
    if not alive and dead == MAXDEAD then return rouse(n) end
    if alive and not room(n, p) then
      n.head = p
      return
    end
    call('LPOP', n.key .. ':l')
    call('HDEL', n.key .. ':p', id)
    if alive then
      local lives, number = math.min(HANDOVER, p[UNTIL] - now), p[TOKEN]
      grant(n, p, HANDED, lives)
      log(n, HANDS, p)
      tell(n, p, 'hand ' .. number .. ' ' .. p[TOKEN] .. ' ' .. p[FENCE] .. ' ' .. digits(lives) .. ' ' .. p[TOOK])
      -- Nothing fits beside it; whether the line is empty is found out later.
      if p[UNITS] == p[CAP] then return end
    else
      dead = dead + 1
    end
  end
end

-- ahead returns the first live place that c has to wait for: one before its own,
-- or any; none that does not grow if c does.
local function ahead(n, c)
  if n.line == 0 then return nil end
  local function first(p)
    if c[FROM] ~= '' and p[FROM] == '' then return nil end -- whoever grows stands before all others
    return p
  end
  if n.head then return n.head[ID] ~= c[ID] and first(n.head) or nil end
  for at = 0, 100000, 10 do
    local ids = call('LRANGE', n.key .. ':l', at, at + 9)
    if #ids == 0 then return nil end
    local vs = call('HMGET', n.key .. ':p', unpack(ids))
    for i, id in ipairs(ids) do
      if id == c[ID] then return nil end
      local p = vs[i] and cmsgpack.unpack(vs[i])
      if live(n, p) then return first(p) end
    end
  end
end

-- queue puts c in line and returns its number.
local function queue(n, c)
  local l, p = n.key .. ':l', n.key .. ':p'
  leave(n, c[ID]) -- if it is dead
  c[TOKEN], c[STATE], c[GRANTED], c[UNTIL] = number(), WAITING, now, now + c[PATIENCE]
  if n.line == 0 then
    n.line, n.tail, n.dirty = 1, 0, true
    call('DEL', l)
  end
  if call(c[FROM] == '' and 'RPUSH' or 'LPUSH', l, c[ID]) == 1 then
    call('DEL', p)
    n.tail = 0 -- the list is new, and has no end yet
  end
  call('HSET', p, c[ID], cmsgpack.pack(c))
  patient(n, c)
  return c[TOKEN]
end

-- shown appends h, as an operator sees it, to reply r.
local function shown(r, h)
  if not h then return r end
  for _, v in ipairs({digits(h[STATE]), h[TOKEN], h[FENCE], digits(h[UNITS]), digits(h[CAP]), digits(now - h[GRANTED]),
    digits(h[UNTIL] - now), digits(h[TTL]), h[NOTE]}) do r[#r + 1] = v end
  return r
end

-- The replies. The first element tells which it is.
local function grants(h) return {'granted ' .. h[TOKEN] .. ' ' .. h[FENCE] .. ' ' .. h[TOOK]} end
local function nothing(n) return shown({'nothing'}, n.claims[#n.claims]) end
local function revoked() return {'revoked'} end

-- refuses is the reply that says what is in c's way; c has this place, or '0'.
local function refuses(n, c, number)
  local from, fits = held(n, c[FROM]), room(n, c)
  local soon, who, reserved, deadlock = math.huge, nil, false, false
  for _, h in ipairs(n.claims) do
    if h ~= from then
      soon = math.min(soon, gone(h))
      if not fits then who = who or h end
    end
  end
  -- Of the line only its first place counts: while it stands, no other's death
  -- changes the answer.
  local p = ahead(n, c)
  if p then
    if c[BARGING] ~= 1 then
      soon = math.min(soon, dies(n, p))
      reserved = fits
    end
    deadlock = c[FROM] ~= ''
  end
  if fits and not reserved or soon == math.huge then soon = now end -- it would be granted if it asked
  return shown({'held', number, digits(math.max(1000, soon - now)), reserved and '1' or '0', deadlock and '1' or '0'}, who), deadlock
end

-- same tells whether c repeats old.
local function same(old, c) return old[UNITS] == c[UNITS] and old[CAP] == c[CAP] and old[FROM] == c[FROM] end

-- judge brings n up to now and returns why c can't be granted, as a reply, and
-- whether c may take a place; nil: take grants it.
local function judge(n, c)
  finish(n)
  local h, p = granted(n, c[ID]), waiting(n, c[ID])
  if h and not same(h, c) or p and not same(p, c) then return {'other'}, false end
  if p then refresh(n, p, c[PATIENCE]) end
  promote(n)
  h = granted(n, c[ID])
  if h then
    if h[STATE] ~= REVOKED then return nil end
    return shown({'held', '0', digits(math.max(1000, gone(h) - now)), '0', '0'}, h), false
  end
  if c[FROM] ~= '' and not held(n, c[FROM]) then
    if granted(n, c[FROM]) then return revoked(), false end
    return nothing(n), false
  end
  if shrinks(n, c) or room(n, c) and (c[BARGING] == 1 or not ahead(n, c)) then return nil end
  p = n.line == 1 and p
  local r, deadlock = refuses(n, c, p and p[TOKEN] or '0')
  return r, not p and not deadlock and c[PATIENCE] > 0
end

-- take grants c, or proves it if it is live already. judge has allowed it.
local function take(n, c)
  local h = held(n, c[ID])
  if h then
    prove(n, h, c[TTL])
    return grants(h)
  end
  leave(n, c[ID])
  grant(n, c, HELD, c[TTL])
  if c[HEARD] == 0 then c[HEARD] = now end
  log(n, GRANTS, c)
  if c[FROM] ~= '' then promote(n) end -- it may have shrunk
  return grants(c)
end
