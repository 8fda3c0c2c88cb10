-- The partition's timers by due time. A timer that a clear put away is left there until somebody finds
-- it, or reclaim does.

-- A timer's session, when its lifetime is the session's; else it is removed.
local lives = {}
local function session_of(member)
  local stop = string.find(member, '\0', 1, true)
  local name = string.sub(member, 1, stop - 1)
  if string.sub(member, stop + 1, stop + 1) == 'k' then
    return name
  end
  if not lives[name] then
    lives[name] = select(2, state_of(name))
  end
  if from_bytes('>I8', member, stop + 2) == lives[name] then
    return name
  end
  call('ZREM', KEYS[1], member)
end
