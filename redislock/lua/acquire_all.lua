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
local ns, cs, refused, key = {}, {}, nil, nil
local function look_at(i)
  key = KEYS[i + 1]
  local n = load(key, ARGV[count + 1 + i])
  cs[i] = request(ARGV[i + 1])
  local r = judge(n, cs[i])
  ns[i] = n
  if r then
    table.insert(r, 1, digits(i - 1))
    table.insert(r, 1, 'refused')
  end
  return r
end
local ok = true
for i = 1, count do
  ok, refused = pcall(look_at, i)
  if refused then break end
end
-- The names are distinct, so that no grant changes what was judged.
local all = refused
if not refused then
  all = {}
  for i = 1, count do
    key = KEYS[i + 1]
    ok, all[i] = pcall(take, ns[i], cs[i])
    if not ok then return redis.error_reply(fault(all[i], key)) end
  end
end
-- Names that a place was handed before another one failed are saved too.
for _, n in ipairs(ns) do save(n) end
if not ok then return redis.error_reply(fault(refused, key)) end
return all
