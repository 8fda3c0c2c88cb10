-- The last thing a script does that changed something: the session's state, and who waits for it.

-- Records how many heads are live, which those who ask then read.
local function flush_live()
  for consumer, by in pairs(live_by) do
    if by ~= 0 then
      call('HINCRBY', life_key('s'), consumer, by)
    end
  end
  live_by = {}
end

-- Records what changed in the session's state, which sessions there are and which are pending.
local function finish()
  flush_live()
  if head ~= head_before or live ~= live_before or pinned ~= pinned_before then
    call('HSET', KEYS[1], 'head', head, 'clear', clear, 'live', live, 'pinned', pinned)
  end
  local name = string.sub(session, 2)
  if head_before == 0 and head > 0 then
    call('ZADD', KEYS[2], 0, name)
  end
  if live > 0 and live_before == 0 then
    call('ZADD', KEYS[3], 0, name)
  elseif live == 0 and live_before > 0 and call('EXISTS', session_key('t'), life_key('t')) == 0 then
    call('ZREM', KEYS[3], name)
  end
end

-- Tells who listens: a kind ('a' events were appended, 'h' a head may be claimable), the source, the
-- lifetime, the first index and the number of events, the session, and small events themselves.
local INLINE = 8192
-- What may not be told is not: whoever it was for looks by itself.
local function publish(kind, first, entries)
  if ARGV[2] == '' then
    return
  end
  local told = { kind, ARGV[4], pack('>I8I8I4', clear, first, #entries), string.sub(session, 2), '\0' }
  local bytes = 0
  for _, entry in ipairs(entries) do
    bytes = bytes + #entry
    if bytes > INLINE or from_bytes('>I4', entry, 25) > BIG then
      for at = #told, 6, -1 do
        told[at] = nil
      end
      break
    end
    told[#told + 1] = pack('>I4', #entry)
    told[#told + 1] = entry
  end
  redis.pcall(ARGV[2], ARGV[3], table.concat(told))
end
