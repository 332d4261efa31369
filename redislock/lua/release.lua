#!lua flags=allow-oom
-- release.lua: gives back a claim, or its place in line.
--
-- KEYS[1]  the mark
-- KEYS[2]  the name
-- KEYS[3]  the journal, if it is on
-- ARGV[1]  how the claim begins in its short form, up to the blank after its ID
--          (see lib.lua); its token 0: by ID alone, a place too
-- ARGV[2]  its grace (see lib.lua); '': its Keep counts
-- ARGV[3]  the name in plain, if the journal is on
--
-- Replies  1, or released | nothing [, holder]
--
-- It runs also when memory is out: what is given back makes room.
local M, J, T = KEYS[1], KEYS[3] or false, nil
local v = redis.call('GET', KEYS[2])
if not v and not J then return 'nothing' end
-- The usual case, with as little work as can be: the claim is in its short form,
-- is this one, and lives.
if not J and ARGV[2] ~= '' and string.sub(v, 1, #ARGV[1]) == ARGV[1] and redis.call('PTTL', KEYS[2]) > ARGV[2] + 0 then
  redis.call('DEL', KEYS[2])
  return 1
end
--#lib
local s, us, at = string.match(ARGV[1], '^f(%d+) (%d+) %d+ %d+ %d+ ()')
local id, token = string.sub(ARGV[1], at, -2), join(s, us)
local n = load(KEYS[2], ARGV[3], v)
finish(n)
local h = granted(n, id)
local reply = {'released'}
if h and (token == '0' or token == h[TOKEN]) then
  log(n, RELEASES, h)
  local k = kept(h)
  if ARGV[2] == '' and k > now then
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
