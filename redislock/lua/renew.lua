#!lua flags=allow-oom
-- renew.lua: proves claims and refreshes places.
--
-- KEYS[1]      the mark
-- KEYS[2...]   the names, one for each claim, not distinct
-- KEYS[last]   the journal, if it is on
-- ARGV[1]      how many claims there are
-- ARGV[2...]   for each "<patience> <how it begins in its short form>", as in
--              release.lua
-- ARGV[...]    then the names in plain, if the journal is on
--
-- Replies, for each claim
--   proved                               the claim with its token is held
--   granted...                           asked for with token 0: it is held
--   held, ...                            a place, refreshed: as acquire.lua's
--   nothing [, holder] | revoked
--   failed, message                      only this one
--
-- It runs also when memory is out: a renewal that fails then would end locks.
-- What it writes is as large as what it replaces, or only a key's time.
local M, T, count = KEYS[1], nil, tonumber(ARGV[1])
local J = KEYS[count + 2] or false
local all, slow = {}, {}
if not J then
  -- The usual case, with as little work as can be: the claim is in its short
  -- form, is this one, and lives. See release.lua.
  for i = 1, count do
    local key, r, v = KEYS[i + 1], ARGV[i + 1], redis.pcall('GET', KEYS[i + 1])
    local at, life, grace = string.match(r, '^%d+ ()f%d+ %d+ (%d+) (%d+)')
    if type(v) == 'string' and string.sub(v, 1, #r - at + 1) == string.sub(r, at) and
      redis.call('PTTL', key) > grace + 0 then
      redis.call('PEXPIRE', key, life)
      all[i] = 'proved'
    else
      slow[#slow + 1] = i
    end
  end
  if #slow == 0 then return all end
else
  for i = 1, count do slow[i] = i end
end
--#lib
local function renew(n, r)
  local patience, s, us, life, grace, at = string.match(r, '^(%d+) f(%d+) (%d+) (%d+) (%d+) %d+ ()')
  local id, token, ttl = string.sub(r, at, -2), join(s, us), (life - grace - 1) * 1000
  local h = granted(n, id)
  if not h and token == '0' then
    local p = waiting(n, id)
    if not p then return nothing(n) end
    refresh(n, p, tonumber(patience)) -- and no more: to be refreshed is not to ask
    return (refuses(n, p, p[TOKEN]))
  end
  if not h or token ~= '0' and token ~= h[TOKEN] then return nothing(n) end
  if h[STATE] == REVOKED then return revoked() end
  prove(n, h, ttl)
  if token == '0' then return grants(h) end
  return {'proved'}
end
local ns = {}
for _, i in ipairs(slow) do
  local key = KEYS[i + 1]
  ns[key] = ns[key] or {name = ARGV[count + 1 + i]}
  table.insert(ns[key], i)
end
-- A key that holds something else spoils no claim on another name, and one of the
-- line none but places.
for key, some in pairs(ns) do
  wrote = false
  local ok, r = pcall(function()
    local n = load(key, some.name)
    finish(n)
    for _, i in ipairs(some) do
      local ok, r = pcall(renew, n, ARGV[i + 1])
      all[i] = ok and r or {'failed', fault(r, key)}
    end
    save(n)
  end)
  if not ok then
    local failed = fault(r, key)
    for _, i in ipairs(some) do all[i] = {'failed', failed} end
  end
end
return all
