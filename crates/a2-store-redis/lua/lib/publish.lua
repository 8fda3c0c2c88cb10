-- Tells who listens: a kind ('a' events were appended, 'h' a head may be claimable), the source, the
-- lifetime, the first index and the number of events, the session, and small events themselves. What may
-- not be told is not, and what has long payloads: whoever it was for looks by itself.
local function publish(kind, first, entries, has_long)
  if ARGV[2] == '' then
    return
  end
  local count, bytes = #entries, 0
  local told = { kind, ARGV[3], pack('>I8I8I4', clear, first, count), sub(session, 2), '\0' }
  for at = 1, count do
    local entry = entries[at]
    bytes = bytes + #entry
    if bytes > 8192 or has_long then
      for rest = #told, 6, -1 do
        told[rest] = nil
      end
      break
    end
    told[at * 2 + 4], told[at * 2 + 5] = pack('>I4', #entry), entry
  end
  redis.pcall(ARGV[2], base .. 'w', concat(told))
end
