#!lua flags=allow-oom
-- release.lua: gives back a claim, or its place in line.
--
-- KEYS[1]  the mark
-- KEYS[2]  the name
-- KEYS[3]  the journal, if it is on
-- ARGV[1]  the claim's ID
-- ARGV[2]  its token; '0': by ID alone, a place too
-- ARGV[3]  '1' if its Keep counts
-- ARGV[4]  the name in plain, if the journal is on
--
-- Replies  released | nothing [, holder...]
--
-- It runs also when memory is out: what is given back makes room.
local M, J = KEYS[1], KEYS[3] or false
local id, token = ARGV[1], ARGV[2]
local v = redis.call('GET', KEYS[2])
if not v then return {'nothing'} end
if not J then
  -- The usual case, with as little work as can be: the claim is alone, lives,
  -- keeps nothing, and nobody waits.
  local ok, s = pcall(cmsgpack.unpack, v)
  local h = ok and type(s) == 'table' and s[1] == 'd1' and #s == 6 and s[2] == 0 and s[4] == 0 and s[6]
  if h and h[ID] == id and (token == '0' or token == h[TOKEN]) and h[STATE] <= HANDED and (ARGV[3] == '0' or h[KEEP] == 0) then
    local t = redis.call('TIME')
    if t[1] * 1000000 + t[2] < h[UNTIL] then
      redis.call('DEL', KEYS[2])
      return {'released'}
    end
  end
end
--#lib
local n = load(KEYS[2], ARGV[4])
finish(n)
local h = granted(n, id)
local reply = {'released'}
if h and (token == '0' or token == h[TOKEN]) then
  log(n, RELEASES, h)
  local k = kept(h)
  if ARGV[3] == '1' and k > now then
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
