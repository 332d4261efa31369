#!lua flags=no-writes
-- list.lua: who holds and who waits, of some names. It changes nothing.
--
-- KEYS[1]      the mark, which is not looked at
-- KEYS[2...]   the names
-- ARGV[1]      how many names there are
--
-- Replies  for each name an array of holders (see acquire.lua), each with the
--          number of its place for its token and its state 6 if it waits: claims by
--          token, then places in line; or "failed", message
local M, J, T = KEYS[1], false, nil
--#lib
local function list(i)
  local n = load(KEYS[i + 1], '')
  finish(n) -- which is not written, so nobody is told
  local rows = {}
  for _, h in ipairs(n.claims) do rows[#rows + 1] = shown(h) end
  if n.line == 1 then
    for at = 0, 1000000, 100 do
      local ids = call('LRANGE', n.key .. ':l', at, at + 99)
      if #ids == 0 then break end
      for _, v in ipairs(call('HMGET', n.key .. ':p', unpack(ids))) do
        local p = v and unfold(v)
        if live(n, p) then
          p[UNTIL], p[FENCE] = dies(n, p), '0'
          rows[#rows + 1] = shown(p)
        end
      end
    end
  end
  return rows
end
local all = {}
for i = 1, tonumber(ARGV[1]) do
  local ok, r = pcall(list, i)
  all[i] = ok and r or {'failed', fault(r, KEYS[i + 1])}
end
return all
