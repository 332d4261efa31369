#!lua flags=allow-oom
-- revoke.lua: takes a claim away by its token.
--
-- KEYS[1]  the mark
-- KEYS[2]  the name
-- KEYS[3]  the journal, if it is on
-- ARGV[1]  the claim's token
-- ARGV[2]  '1': free the name at once
-- ARGV[3]  the reason, for the journal
-- ARGV[4]  the name in plain, if the journal is on
--
-- Replies  released | nothing [, holder] | failed, message
local M, J, T = KEYS[1], KEYS[3] or false, nil
--#lib
local function revoke()
  local n = load(KEYS[2], ARGV[4])
  settle(n)
  local reply = nothing(n)
  for _, h in ipairs(n.claims) do
    if h[TOKEN] == ARGV[1] and h[TOKEN] ~= '0' then -- a stranger has 0
      local alive = h[STATE] == HELD or h[STATE] == HANDED
      if alive or ARGV[2] == '1' then
        log(n, REVOKES, h, {now = ARGV[2], reason = ARGV[3]})
        if alive then tell(n, h, 'revoked') end
        if ARGV[2] == '1' then
          remove(n, h)
          n.took = math.max(n.took, now + tomb(h))
        else
          h[STATE], n.dirty = REVOKED, true
        end
      end
      promote(n) -- the name may be free, or a place that grows dead
      reply = {'released'}
      break
    end
  end
  save(n)
  return reply
end
local ok, r = pcall(revoke)
return ok and r or {'failed', fault(r, KEYS[2])}
