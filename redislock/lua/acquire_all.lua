#!lua
-- acquire_all.lua: asks once for several claims and grants all or none.
--
-- KEYS[1]      the mark
-- KEYS[2...]   the names, distinct
-- KEYS[last]   the journal, if it is on
-- ARGV[1]      how many names there are
-- ARGV[2...]   the claims, as requests, in the order of the names
-- ARGV[...]    then the names in plain, if the journal is on
--
-- Replies  for each claim as acquire.lua's grant, or "refused", the index of the
--          claim that is, and the rest as acquire.lua's refusal
local M, T, count = KEYS[1], nil, tonumber(ARGV[1])
local J = KEYS[count + 2] or false
--#lib
local ns, cs, refused = {}, {}, nil
for i = 1, count do
  ns[i], cs[i] = load(KEYS[i + 1], ARGV[count + 1 + i]), request(ARGV[i + 1])
  local r = judge(ns[i], cs[i])
  if r then
    table.insert(r, 1, digits(i - 1))
    table.insert(r, 1, 'refused')
    refused = r
    break
  end
end
-- The names are distinct, so that no grant changes what was judged.
local all = refused or {}
if not refused then
  for i = 1, count do all[i] = take(ns[i], cs[i]) end
end
for _, n in ipairs(ns) do save(n) end
return all
