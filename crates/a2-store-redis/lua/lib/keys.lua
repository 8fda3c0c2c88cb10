-- Keys of the session that outlive a clear, and those of one lifetime.
local function session_key(letter)
  return base .. letter .. session
end
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

local function add(lists, key, ...)
  local list = lists[key]
  if not list then
    list = {}
    lists[key] = list
  end
  for at = 1, select('#', ...) do
    list[#list + 1] = (select(at, ...))
  end
end
