-- The logs that a batch declares.

local function declared(at)
  local first = log_args + 4 * at
  return {
    consumer = args[first - 3], log = args[first - 2], backfill = args[first - 1] == '1',
    types = args[first],
  }
end

-- Stores the batch, if there is one, moves the declared logs that take some of it, but for that of
-- `moved`, whose completion returns it, and tells of it.
local function store_all(moved)
  if events == 0 then
    return {}
  end
  local before, entries, by_type = head, store(), {}
  for at = 1, types do
    by_type[args[types_at + 2 * at - 1]] = true
  end
  for at = 1, logs do
    local entry = declared(at)
    local takes = entry.types == '*'
    if not takes then
      for event_type in string.gmatch(entry.types, '([^%z]*)%z') do
        if by_type[event_type] then
          takes = true
          break
        end
      end
    end
    if takes and not (moved and entry.consumer == moved.consumer and entry.log == moved.log) then
      touch(entry, before)
    end
  end
  publish('a', before + 1, entries, bigs > 0)
  return entries
end

-- The types that a log takes: the caller's declaration, else the recorded ones.
local function types_declared(consumer, name, recorded)
  for at = 1, logs do
    local entry = declared(at)
    if entry.consumer == consumer and entry.log == name then
      return entry.types
    end
  end
  return recorded
end

-- Who owns the ids of the batch, and how many are owned.
local function owners()
  local owned, count = {}, 0
  for at = 1, events do
    local index = values[1 + at]
    if index then
      owned[at], count = from_bytes('>I8', index), count + 1
    end
  end
  return owned, count
end

-- The ids that are owned, in the order given.
local function owned_ids()
  local ids = {}
  for at = 1, events do
    if values[1 + at] then
      ids[#ids + 1] = sub(args[ids_at + at], 2)
    end
  end
  return ids
end
