#!lua flags=allow-oom
-- renew.lua: proves claims and refreshes places.
--
-- KEYS[1]      the mark
-- KEYS[2...]   the names, one for each claim, not distinct
-- KEYS[last]   the journal, if it is on
-- ARGV[1]      how many claims there are
-- ARGV[2...]   for each {id, token or '0', ttl, patience}, packed
-- ARGV[...]    then the names in plain, if the journal is on
--
-- Replies, for each claim
--   proved                               the claim with its token is held
--   granted, token, fence, took over     asked for with token 0: it is held
--   held, ...                            a place, refreshed: as acquire.lua's
--   nothing [, holder...] | revoked
--   failed, message                      only this one
--
-- It runs also when memory is out: a renewal that fails then would end locks.
-- Nothing that it writes is larger than what it replaces but by a hand-over,
-- which takes a place away.
local M, count = KEYS[1], tonumber(ARGV[1])
local J = KEYS[count + 2] or false
--#lib
local function renew(n, r)
  local id, token = r[1], r[2]
  local h = granted(n, id)
  if not h and token == '0' then
    local p = waiting(n, id)
    if not p then return nothing(n) end
    refresh(n, p, r[4])
    promote(n) -- also the takeover after an expiry
    h = granted(n, id)
    if not h then return (refuses(n, p, p[TOKEN])) end
  end
  if not h or token ~= '0' and token ~= h[TOKEN] then return nothing(n) end
  if h[STATE] == REVOKED then return revoked() end
  prove(n, h, r[3])
  if token == '0' then return grants(h) end
  return {'proved'}
end
local ns, all = {}, {}
for i = 1, count do
  local key = KEYS[i + 1]
  local n = ns[key]
  if not n then
    -- A key that holds something else spoils no other claim.
    local ok, got = pcall(load, key, ARGV[count + 1 + i])
    n = ok and got or {failed = type(got) == 'table' and got.err or tostring(got)}
    ns[key] = n
    if ok then finish(n) end
  end
  all[i] = n.failed and {'failed', n.failed} or renew(n, cmsgpack.unpack(ARGV[i + 1]))
end
for _, n in pairs(ns) do
  if not n.failed then save(n) end
end
return all
