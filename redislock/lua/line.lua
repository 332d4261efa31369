-- line.lua: the rules of the line, and how a request is judged. It is put after
-- lib.lua.

-- live tells whether place p is waited for. A place that grows needs its claim.
local function live(n, p) return p and now < p[UNTIL] and (p[FROM] == '' or held(n, p[FROM]) ~= nil) end

-- dies is when p is dead if nobody acts.
local function dies(n, p)
  local from = held(n, p[FROM])
  if from and from[UNTIL] < p[UNTIL] then return from[UNTIL] end
  return p[UNTIL]
end

-- unfold reads a place as it stands in the hash.
local function unfold(v)
  local ends, number, taken, length, at = string.match(v, '^q(%d+) (%d+) (%d+) (%d+) ()')
  if not ends then return cmsgpack.unpack(v) end
  local p = request(v, at + length + 1)
  p[TOKEN], p[STATE], p[UNTIL], p[GRANTED] = number, WAITING, tonumber(ends), tonumber(taken)
  return p
end

-- fold is how p stands in the hash.
local function fold(p)
  if not raws[p] then return cmsgpack.pack(p) end
  return string.format('q%d %s %d %d ', p[UNTIL], p[TOKEN], p[GRANTED], #p[CHAN]) .. p[CHAN] .. ' ' .. raws[p]
end

-- place returns the place with this ID, or false. It is read once.
local function place(n, id)
  local p = n.places[id]
  if p == nil then
    local v = call('HGET', n.key .. ':p', id)
    p = v and unfold(v)
    n.places[id] = p
  end
  return p
end

-- look reads the first place in line, and the one with this ID, in one go.
local function look(n, id)
  if n.line == 0 then return end
  n.first = call('LINDEX', n.key .. ':l', 0)
  if not n.first then -- whatever eviction may have left in the hash is not in line
    n.places[id] = false
    return
  end
  local vs = call('HMGET', n.key .. ':p', n.first, id)
  n.places[n.first] = vs[1] and unfold(vs[1])
  if id ~= n.first then n.places[id] = vs[2] and unfold(vs[2]) end
end

-- waiting returns the live place with this ID.
local function waiting(n, id)
  if n.line == 0 then return nil end
  local p = place(n, id)
  if live(n, p) then return p end
end

-- leave takes the place with this ID out of the line.
local function leave(n, id)
  if n.line == 1 and place(n, id) then
    write('HDEL', n.key .. ':p', id)
    write('LREM', n.key .. ':l', 1, id)
    n.places[id] = false
  end
end

-- patient keeps the line's keys until place p is dead.
local function patient(n, p)
  if p[UNTIL] <= n.tail then return end
  n.tail, n.dirty = p[UNTIL] + p[PATIENCE] / 2, true
  write('PEXPIREAT', n.key .. ':l', millis(n.tail))
  write('PEXPIREAT', n.key .. ':p', millis(n.tail))
end

-- refresh makes p wait for patience from now; it never shortens. What would
-- gain little is not worth a write.
local function refresh(n, p, patience)
  if now + patience - p[UNTIL] <= patience / 16 then return end
  if patience ~= p[PATIENCE] then raws[p] = nil end
  p[UNTIL], p[PATIENCE] = now + patience, patience
  write('HSET', n.key .. ':p', p[ID], fold(p))
  patient(n, p)
end

-- rouse signals the first live place behind those that were removed.
local function rouse(n)
  for at = 0, 100000, 100 do
    local ids = call('LRANGE', n.key .. ':l', at, at + 99)
    if #ids == 0 then return end
    for _, v in ipairs(call('HMGET', n.key .. ':p', unpack(ids))) do
      local p = v and unfold(v)
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
    local id = n.first
    if id == nil then id = call('LINDEX', n.key .. ':l', 0) end
    n.first = nil
    if not id then -- also if eviction has left the hash behind, whose places would never be handed anything
      n.line, n.tail, n.dirty, n.bare = 0, 0, true, true
      write('DEL', n.key .. ':p')
      return
    end
    local p = place(n, id)
    local alive = live(n, p)
    if not alive and dead == MAXDEAD then return rouse(n) end
    if alive and not room(n, p) then
      n.head = p
      return
    end
    local lives, number
    if alive then
      lives, number = math.min(HANDOVER, p[UNTIL] - now), p[TOKEN]
      grant(n, p, HANDED, lives) -- which may fail, while nothing was changed
    end
    write('LPOP', n.key .. ':l')
    write('HDEL', n.key .. ':p', id)
    n.places[id] = false
    if alive then
      log(n, HANDS, p)
      tell(n, p, 'hand ' .. number .. ' ' .. p[TOKEN] .. ' ' .. p[FENCE] .. ' ' .. digits(lives) .. ' ' .. p[TOOK])
      -- Nothing fits beside it; whether the line is empty is found out later.
      if p[UNITS] == p[CAP] then return end
    else
      dead = dead + 1
    end
  end
end

-- settle ends what has ended, and lets places in if something is gone.
local function settle(n)
  local had = #n.claims
  finish(n)
  if #n.claims < had then promote(n) end
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
      local p = vs[i] and unfold(vs[i])
      if live(n, p) then return first(p) end
    end
  end
end

-- queue puts c in line and returns its number.
local function queue(n, c)
  local l, p = n.key .. ':l', n.key .. ':p'
  c[TOKEN], c[STATE], c[GRANTED], c[UNTIL] = number(), WAITING, now, now + c[PATIENCE]
  leave(n, c[ID]) -- if it is dead
  if n.line == 0 then
    n.line, n.tail, n.dirty = 1, 0, true
    if not n.bare then write('DEL', l) end
  end
  if write(c[FROM] == '' and 'RPUSH' or 'LPUSH', l, c[ID]) == 1 then
    if not n.bare then write('DEL', p) end
    n.tail = 0 -- the list is new, and has no end yet
  end
  write('HSET', p, c[ID], fold(c))
  patient(n, c)
  return c[TOKEN]
end

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
  return holds(who, soon, reserved, deadlock, number), deadlock
end

-- same tells whether c repeats old.
local function same(old, c) return old[UNITS] == c[UNITS] and old[CAP] == c[CAP] and old[FROM] == c[FROM] end

-- judge brings n up to now and returns why c can't be granted, as a reply, and
-- whether c may take a place; nil: take grants it.
local function judge(n, c)
  finish(n)
  look(n, c[ID])
  local h, p = granted(n, c[ID]), waiting(n, c[ID])
  if h and not same(h, c) or p and not same(p, c) then return {'other'}, false end
  if p then refresh(n, p, c[PATIENCE]) end
  promote(n)
  h = granted(n, c[ID])
  if h then
    if h[STATE] ~= REVOKED then return nil end
    return holds(h, gone(h), false, false, '0'), false
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
  grant(n, c, HELD, c[TTL]) -- which may fail, while nothing was changed
  leave(n, c[ID])
  if c[HEARD] == 0 then c[HEARD] = now end
  log(n, GRANTS, c)
  if c[FROM] ~= '' then promote(n) end -- it may have shrunk
  return grants(c)
end
