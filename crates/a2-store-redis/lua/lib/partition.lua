-- Sessions of one partition. The key is that of its timers by due time.

local function key_of(letter, name)
  return base .. letter .. '\0' .. name
end

-- A session's key of one lifetime.
local function life_key_of(letter, name, life)
  return key_of(letter, name) .. '\0' .. format('%d', life)
end

-- A session's state: head, clear, live, pinned, listed; as `session` has it.
local STATE = '>I8I8I8I8B'
local function state_of(name)
  local state = call('HGET', key_of('m', name), 'h')
  if state then
    return from_bytes(STATE, state)
  end
  return 0, 0, 0, 0, 0
end

-- How many calls to the server one script makes, about.
local CALLS = 2000
