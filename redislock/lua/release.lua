#!lua flags=allow-oom
-- release.lua: gives back a claim, or its place in line.
--
-- KEYS[1]  the mark
-- KEYS[2]  the name
-- KEYS[3]  the journal, if it is on
-- ARGV[1]  the claim's ID, packed
-- ARGV[2]  its token; '0': by ID alone, a place too
-- ARGV[3]  '1' if its Keep counts
-- ARGV[4]  the name in plain, if the journal is on
--
-- Replies  released | nothing [, holder...]
--
-- It runs also when memory is out: what is given back makes room.
local M, J = KEYS[1], KEYS[3] or false
local v = redis.call('GET', KEYS[2])
if not v and not J then return 'nothing' end
if not J and ARGV[3] == '0' then
  -- The usual case, with as little work as can be: the claim is in its short
  -- form, is this one, and lives. The array's head before the ID is 3 bytes.
  local token, proved, ttl, at = string.match(v, '^f(%d+) %d+ (%d+) (%d+) %d+ ()')
  if token and (ARGV[2] == token or ARGV[2] == '0') and string.sub(v, at + 3, at + 2 + #ARGV[1]) == ARGV[1] then
    local t = redis.call('TIME')
    if t[1] * 1000000 + t[2] < proved + ttl then
      redis.call('DEL', KEYS[2])
      return 'released'
    end
  end
end
--#lib
local id, token = cmsgpack.unpack(ARGV[1]), ARGV[2]
local n = load(KEYS[2], ARGV[4], v)
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
