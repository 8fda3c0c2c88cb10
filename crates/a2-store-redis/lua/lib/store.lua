-- Storing events and queueing them on their targets.
--
-- Events come as their number, and for each its id, type, cause (empty: none), payload, number of
-- targets, and the targets: kind (0 event, 1 lane), consumer, U+0000, lane.

local function take_events()
  local events = {}
  for at = 1, tonumber(take()) do
    local event = { id = take(), type = take(), cause = take(), payload = take() }
    local targets = tonumber(take())
    if targets > 0 then
      event.targets = {}
      for target = 1, targets do
        event.targets[target] = take()
      end
    end
    events[at] = event
  end
  return events
end

-- The owners of the events' ids in this lifetime, and how many there are.
local function owners(events)
  if #events == 0 then
    return {}, 0
  end
  local ids = {}
  for at, event in ipairs(events) do
    ids[at] = event.id
  end
  local found, count = get_many(life_key('i'), ids), 0
  for at = 1, #ids do
    found[at] = tonumber(found[at] or nil)
    if found[at] then
      count = count + 1
    end
  end
  return found, count
end

-- The ids that are owned, in the order given.
local function owned_ids(events, found)
  local ids = {}
  for at, event in ipairs(events) do
    if found[at] then
      ids[#ids + 1] = event.id
    end
  end
  return ids
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

-- The lanes that the events are for, with their head, tail and position; the names of new ones are
-- recorded.
local function lanes_of(events, order)
  local fields, lanes = {}, {}
  for _, event in ipairs(events) do
    for _, target in ipairs(event.targets or {}) do
      if string.byte(target) == 49 and lanes[target] == nil then
        lanes[target] = false
        fields[#fields + 1] = target
      end
    end
  end
  if #fields == 0 then
    return lanes
  end
  local names = {}
  for at, target in ipairs(fields) do
    names[at] = string.sub(target, 2)
  end
  local records = get_many(life_key('n'), names)
  for at, target in ipairs(fields) do
    local lane = { field = names[at], head = 0, tail = 0, position = clear }
    if records[at] then
      lane.head, lane.tail, lane.position = from_bytes('>I8I8I8', records[at])
    else
      local stop = string.find(target, '\0', 2, true)
      add(order, 1, 0, string.sub(target, 2, stop) .. '1' .. string.sub(target, stop + 1))
    end
    lanes[target] = lane
  end
  return lanes
end

-- Queues the events after the log's head on their targets.
local function enqueue(events)
  local free, links, order = {}, {}, {}
  local lanes = lanes_of(events, order)
  for at, event in ipairs(events) do
    local index = head + at
    for _, target in ipairs(event.targets or {}) do
      local stop = string.find(target, '\0', 2, true)
      local kind, consumer = string.sub(target, 1, 1), string.sub(target, 2, stop - 1)
      local lane = lanes[target]
      if lane and lane.head > 0 then
        local tail = '>' .. target .. '\0' .. pack('>I8', lane.tail)
        add(links, row_key(lane.tail), tail, index)
      else
        add(free, consumer, index, member_of(kind, string.sub(target, stop + 1), index))
        count_live(consumer, 1)
        if lane then
          lane.head = index
        else
          add(order, 1, 0, consumer .. '\0' .. '3' .. pack('>I8', index))
        end
      end
      if lane then
        lane.tail = index
      end
    end
  end
  local records = {}
  for _, lane in pairs(lanes) do
    records[#records + 1] = lane.field
    records[#records + 1] = pack('>I8I8I8', lane.head, lane.tail, lane.position)
  end
  each_many('HSET', life_key('n'), records)
  for key, list in pairs(links) do
    each_many('HSET', key, list)
  end
  for consumer, list in pairs(free) do
    each_many('ZADD', named_key('f', consumer), list)
  end
  each_many('ZADD', life_key('o'), order[1] or {})
end

-- Stores the events, queues them on their targets and moves the declared logs, but for that of
-- `moved`, whose completion returns them. A cause is for all of them.
local function store(events, cause, served, moved)
  local before, count = head, #events
  if count == 0 then
    return
  end
  local entries, ids, by_type = {}, {}, {}
  for at, event in ipairs(events) do
    local index = before + at
    local of = cause or event.cause
    local entry = pack(HEADER, index, now, #event.id, #event.type, #of, #event.payload)
      .. event.id .. event.type .. of
    if #event.payload > BIG then
      call('SET', big_key(index), event.payload)
      call('RPUSH', life_key('w'), index)
    else
      entry = entry .. event.payload
    end
    entries[at] = entry
    ids[#ids + 1] = event.id
    ids[#ids + 1] = index
    add(by_type, event.type, pack('>I8', index))
  end
  local from = 1
  while from <= count do
    local chunk = floor((before + from) / CHUNK)
    local last = math.min(count, (chunk + 1) * CHUNK - 1 - before)
    call('RPUSH', chunk_key('l', chunk), unpack(entries, from, last))
    from = last + 1
  end
  each_many('HSET', life_key('i'), ids)
  index_types(by_type)
  enqueue(events)
  head = before + count
  for _, entry in ipairs(served or {}) do
    local is_moved = moved and entry.consumer == moved.consumer and entry.log == moved.log
    if entry.log and not is_moved and takes_one(entry.types, by_type) then
      touch(entry, before)
    end
  end
  publish('a', before + 1, entries)
end
