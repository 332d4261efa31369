-- plain.lua: the layout that is shared with other programs. In it a lock is the
-- plain string at the key that is the name itself, as SET name ID NX PX makes it.
-- It is put after lib.lua, and wraps how a name's state is read and written.
--
-- KEYS has the plain keys after the names, in the same order. There is no journal
-- and no line, and every claim is exclusive.
--
-- Other programs see only the plain string: so it lives until the claim is gone,
-- Keep and Delay included. What else there is to know stands beside it as ever,
-- and counts only while the string is the claim's ID.
J = false
local plains, names = {}, (#KEYS - 1) / 2
for i = 1, names do plains[KEYS[1 + i]] = KEYS[1 + names + i] end

-- stranger is a claim of a program that is not dibs, as far as can be told, for
-- which left milliseconds are left. It outlives this step, as the string does.
local function stranger(left)
  local lives = (left + 1) * 1000
  return {'\0stranger', '0', '0', 1, 1, HELD, now + lives, now, now, lives, 0, 0, 0, 0, '', 'a program that is not dibs', '', 0, 0}
end

local load_, save_ = load, save

load = function(key, name)
  local n = load_(key, name)
  n.plain = plains[key]
  n.value = try('GET', n.plain)
  if type(n.value) == 'table' then
    error({err = string.find(n.value.err, '^WRONGTYPE') and 'WRONGTYPE the key ' .. n.plain .. ' is no string' or n.value.err})
  end
  local h = n.claims[1]
  if h and n.value ~= h[ID] and now < gone(h) then
    -- Another program has deleted it, or set it anew: that is a release.
    n.claims, n.dirty = {}, true
  end
  if n.value and not (h and n.value == h[ID]) then
    local left = call('PTTL', n.plain)
    if left == -1 then
      error({err = 'FOREIGN the key ' .. n.plain .. ' is held by another program, and without a time to live: it may never be given back'})
    end
    n.stranger = stranger(left)
    n.claims[1] = n.stranger
  end
  return n
end

save = function(n)
  if n.stranger then
    n.claims = {}
    return save_(n)
  end
  save_(n)
  if not n.dirty then return end
  local h = n.claims[1]
  if h then
    write('SET', n.plain, h[ID], 'PXAT', millis(gone(h)))
  elseif n.value then
    write('DEL', n.plain)
  end
end
