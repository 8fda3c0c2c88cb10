-- Which events are of a type: a string of their indexes, 8 bytes each.

local function index_at(key, place)
  local bytes = call('GETRANGE', key, place * 8, place * 8 + 7)
  if #bytes == 8 then
    return (from_bytes('>I8', bytes))
  end
end

-- Appends to `found` the first `limit` indexes of a type after `after`, up to `through`.
local function indexes_of_type(event_type, after, through, limit, found)
  local key = named_key('y', event_type)
  -- The end is nearly always the place.
  local window = call('GETRANGE', key, -128, -1)
  local first = #window >= 8 and from_bytes('>I8', window)
  if not first then
    return
  end
  if first > after and #window == 128 then
    local low, high = 0, call('STRLEN', key) / 8 - 16
    while low < high do
      local middle = floor((low + high) / 2)
      if index_at(key, middle) > after then
        high = middle
      else
        low = middle + 1
      end
    end
    window = call('GETRANGE', key, low * 8, (low + limit) * 8 - 1)
  end
  local left = limit
  for place = 1, #window - 7, 8 do
    local index = from_bytes('>I8', window, place)
    if index > through or left == 0 then
      return
    end
    if index > after then
      found[#found + 1] = index
      left = left - 1
    end
  end
end

-- The first `limit` events after `after` that the types take, up to `through`, in order. Types are '*',
-- or their names, each ended by U+0000. `after` is never below the marker, which no log takes.
local function taken_after(types, after, through, limit)
  local found = {}
  if types == '*' then
    for index = after + 1, math.min(through, after + limit) do
      found[#found + 1] = index
    end
    return found
  end
  if after >= through then
    return found
  end
  local count = 0
  for event_type in string.gmatch(types, '([^%z]*)%z') do
    indexes_of_type(event_type, after, through, limit, found)
    count = count + 1
  end
  if count > 1 then
    table.sort(found)
    for at = #found, limit + 1, -1 do
      found[at] = nil
    end
  end
  return found
end

-- Records that events are of types.
local function index_types(by_type)
  for event_type, indexes in pairs(by_type) do
    if call('APPEND', named_key('y', event_type), table.concat(indexes)) == #indexes * 8 then
      call('SADD', life_key('r'), 'y' .. event_type)
    end
  end
end
