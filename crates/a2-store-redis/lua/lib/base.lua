-- The session of a script: its state, and its keys. KEYS: the session's state, the partition's sessions,
-- the partition's pending sessions, a key that never exists.

local state = call('HMGET', KEYS[1], 'head', 'clear', 'live', 'pinned')
local head = tonumber(state[1]) or 0
-- The clear marker's index, 0 before any: it names the lifetime.
local clear = tonumber(state[2]) or 0
-- How many heads are live, and how many pin snapshots.
local live, pinned = tonumber(state[3]) or 0, tonumber(state[4]) or 0
local head_before, live_before, pinned_before = head, live, pinned

-- U+0000 and the session's name.
local session = string.sub(KEYS[1], #base + 2)

-- Keys of the session that outlive a clear, and those of one lifetime.
local function session_key(letter)
  return base .. letter .. session
end
local lifetime = session .. '\0' .. format('%d', clear)
local function life_key(letter)
  return base .. letter .. lifetime
end
local function named_key(letter, name)
  return base .. letter .. lifetime .. '\0' .. name
end
-- A key for each 1,000 indexes, so that none grows with the history.
local CHUNK = 1000
local function chunk_key(letter, chunk)
  return base .. letter .. lifetime .. '\0' .. format('%d', chunk)
end

-- Calls a variadic command with many arguments, an even number at a time: Lua's stack holds 8,000.
local MOST = 4000
local function each_many(command, key, list)
  local count = #list
  if count <= MOST then
    if count > 0 then
      call(command, key, unpack(list))
    end
    return
  end
  for first = 1, count, MOST do
    call(command, key, unpack(list, first, math.min(first + MOST - 1, count)))
  end
end

-- The values of many fields.
local function get_many(key, fields)
  if #fields <= MOST then
    return call('HMGET', key, unpack(fields))
  end
  local values = {}
  for first = 1, #fields, MOST do
    local some = call('HMGET', key, unpack(fields, first, math.min(first + MOST - 1, #fields)))
    for _, value in ipairs(some) do
      values[#values + 1] = value
    end
  end
  return values
end
