-- Sessions of one partition. KEYS: the timers by due time, the sessions, the pending sessions, a key
-- that never exists.

local function key_of(letter, name)
  return base .. letter .. '\0' .. name
end

-- A session's key of one lifetime.
local function life_key_of(letter, name, life)
  return key_of(letter, name) .. '\0' .. format('%d', life)
end

-- How many calls to the server one script makes, about.
local CALLS = 2000
