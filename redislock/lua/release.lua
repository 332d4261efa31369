#!lua flags=allow-oom
-- release.lua: gives back claims, or their places in line.
--
-- KEYS[1]      the mark
-- KEYS[2...]   the names, one for each claim, not distinct
-- KEYS[last]   the journal, if it is on
-- ARGV[1]      how many claims there are
-- ARGV[2...]   for each how it begins in its short form, up to the blank after its
--              ID (see lib.lua); its token 0: by ID alone, a place too. Then its
--              grace (see lib.lua); '': its Keep counts. Then until when, in
--              milliseconds of the clock, it lives if it was granted when its token says
-- ARGV[...]    then the names in plain, if the journal is on
--
-- Replies, for each claim; if there is one, this alone
--   1, or released
--   nothing [, holder]
--   failed, message      only this one
--
-- It runs also when memory is out: what is given back makes room.
local M, T, count = KEYS[1], nil, ARGV[1] + 0
local J = KEYS[count + 2] or false
local all, v, slow = {}, nil, count
if not J then
  -- The usual case, with as little work as can be: the claim is in its short form,
  -- is this one, and lives. Of many claims the values are read in one step, and the
  -- keys go in one; one in short form was granted when its token says.
  local K, A, sub, get, ms = KEYS, ARGV, string.sub, redis.pcall, 1 / 0
  local values, over = {}, {}
  if count > 1 then
    T = redis.call('TIME')
    ms = T[1] * 1000 + T[2] / 1000
    values = get('MGET', unpack(K, 2, count + 1)) -- an error has no elements
  end
  for i = 1, count do
    local key, head, grace = K[i + 1], A[3 * i - 1], A[3 * i]
    v = values[i]
    if not v or sub(v, 1, 1) ~= 'f' then v = get('GET', key) end -- it is not in short form, or was not read, or has changed
    if not v then
      all[i], slow = 'nothing', slow - 1
    elseif type(v) == 'table' then
      v = false -- the rules find out why
    elseif grace ~= '' and sub(v, 1, #head) == head and (ms < A[3 * i + 1] + 0 or redis.call('PTTL', key) > grace + 0) then
      over[#over + 1] = key
      all[i], slow = 1, slow - 1
    elseif grace ~= '' and string.sub(v, 1, 1) == 'h' then
      -- The next usual case: it is this one, lives, and others wait, of whom the
      -- first lives. It is what promote does then.
      T = T or redis.call('TIME')
      local now = T[1] * 1000000 + T[2]
      local ends, tail, at = string.match(v, '^h(%d+) (%d+) %d+ %d+ %d %d ()')
      local id, l, p = nil, key .. ':l', key .. ':p'
      local ok, done = pcall(function()
        if string.sub(v, at, at + #head - 1) ~= head or now >= ends + 0 then return false end
        id = redis.call('LPOP', l)
        if not id then -- they have left
          redis.call('DEL', key, p)
          return true
        end
        local place = get('HGET', p, id)
        if type(place) == 'table' then return false end
        local dies, waited, length, from
        if place then dies, waited, length, from = string.match(place, '^q(%d+) (%d+) %d+ (%d+) ()') end
        local number = T[1] .. string.sub('00000' .. T[2], -6)
        local mark = dies and now < dies + 0 and (get('SET', M, number, 'GET') or '0')
        if type(mark) ~= 'string' or not (now > (tonumber(mark) or now)) then
          if type(mark) == 'string' then redis.call('SET', M, mark) end
          return false
        end
        redis.call('HDEL', p, id)
        local channel, r = string.sub(place, from, from + length - 1), string.sub(place, from + length + 1)
        local lives = string.format('%d', math.min(HANDOVER, dies - now))
        local last = now + lives
        local far = math.max(tail, last + string.match(r, '^%d+ (%d+)') * 1000)
        redis.call('SET', key, 'h' .. string.format('%d', last) .. ' ' .. tail .. ' ' .. number .. ' 0 2 0 f' .. T[1] .. ' ' .. T[2] .. ' ' .. r,
          'PXAT', string.format('%d', math.ceil(far / 1000)))
        if channel ~= '' then
          redis.pcall('PUBLISH', channel, 'hand ' .. waited .. ' ' .. number .. ' ' .. number .. ' ' .. lives .. ' 0 ' .. #id .. ' ' .. id .. key)
        end
        return true
      end)
      if ok and done then
        all[i], slow = 1, slow - 1
      elseif id then -- as if nothing had been tried
        redis.call('LPUSH', l, id)
        redis.call('PEXPIREAT', l, string.format('%d', math.ceil(tail / 1000)))
      end
    end
  end
  if #over > 0 and redis.call('DEL', unpack(over)) < #over then -- one was given back twice
    for i = 1, count do
      if all[i] == 1 then
        if over[K[i + 1]] then all[i] = 'nothing' end
        over[K[i + 1]] = true
      end
    end
  end
  if slow == 0 then return count == 1 and all[1] or all end
end
--#lib
local function free(i)
  wrote = false
  local head, grace = ARGV[3 * i - 1], ARGV[3 * i]
  local s, us, at = string.match(head, '^f(%d+) (%d+) %d+ %d+ %d+ ()')
  local id, token = string.sub(head, at, -2), join(s, us)
  local n = load(KEYS[i + 1], ARGV[3 * count + 1 + i], count == 1 and v)
  settle(n)
  local h = granted(n, id)
  local reply = {'released'}
  if h and (token == '0' or token == h[TOKEN]) then
    log(n, RELEASES, h)
    local k = kept(h)
    if grace == '' and k > now then
      h[STATE], h[UNTIL], n.dirty = KEPT, k, true
    else
      remove(n, h)
    end
    promote(n)
  elseif not h and token == '0' and waiting(n, id) then
    leave(n, id)
    promote(n)
  else
    reply = nothing(n)
  end
  save(n)
  return reply
end
for i = 1, count do
  if not all[i] then
    local ok, r = pcall(free, i) -- a key that holds something else spoils no other claim
    all[i] = ok and r or {'failed', fault(r, KEYS[i + 1])}
  end
end
return count == 1 and all[1] or all
