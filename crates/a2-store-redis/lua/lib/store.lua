-- Storing events and queueing them on their targets.

-- Takes in what the session's fields hold.
local function read_fields()
  for at = 1, consumers do
    local count = values[1 + events + lanes + at]
    counts[sub(args[consumers_at + at], 2)] = count and tonumber(count)
  end
  for at = 1, lanes do
    local record = values[1 + events + at]
    if record and #record ~= 24 then
      error('a lane is broken')
    end
  end
end
read_fields()

-- Whether a served consumer has a live head; after what was done.
local function has_pending()
  if served == 4294967295 then
    return live > 0 and 1 or 0
  end
  if live > 0 then
    for at = 1, served do
      if (counts[sub(args[consumers_at + at], 2)] or 0) > 0 then
        return 1
      end
    end
  end
  return 0
end

-- Stores the batch and queues it on its targets. Answers the entries.
local function store()
  local before, stamp = head, pack('>i8', now)
  local places, entries = {}, {}
  for at = 1, events do
    local place = pack('>I8', before + at)
    places[at], entries[at] = place, place .. stamp .. args[tails_at + at]
    changed[put + 1], changed[put + 2] = args[ids_at + at], place
    put = put + 2
  end
  for at = 1, bigs do
    local long = args[big_args + at]
    local index = format('%d', before + from_bytes('>I4', long))
    call('SET', base .. 'e' .. lifetime .. '\0' .. index, sub(long, 5))
    call('RPUSH', base .. 'w' .. lifetime, index)
  end
  local from = 1
  repeat
    local chunk = floor((before + from) / 1000)
    local last = math.min(events, chunk * 1000 + 999 - before)
    call('RPUSH', base .. 'l' .. lifetime .. '\0' .. format('%d', chunk), unpack(entries, from, last))
    from = last + 1
  until from > events
  for at = 1, types do
    local which, indexes = args[types_at + 2 * at], nil
    if which == '*' then
      indexes = concat(places)
    else
      indexes = {}
      for byte = 1, #which, 2 do
        indexes[#indexes + 1] = places[from_bytes('>I2', which, byte)]
      end
      indexes = concat(indexes)
    end
    local event_type = args[types_at + 2 * at - 1]
    if call('APPEND', base .. 'y' .. lifetime .. '\0' .. event_type, indexes) == #indexes then
      call('SADD', base .. 'r' .. lifetime, 'y' .. event_type)
    end
  end

  local free, order
  for at = 1, lanes do
    local which = args[lane_args + at]
    local all = #which == 3
    local count = all and events or #which / 2 - 1
    if count > 0 then
      local name, record = sub(args[lanes_at + at], 2), values[1 + events + at]
      local stop = string.find(name, '\0', 1, true)
      local first, tail, link = ZERO, ZERO, '>1' .. name .. '\0'
      if record then
        first, tail = sub(record, 1, 8), sub(record, 9, 16)
      else
        order = order or {}
        order[#order + 1], order[#order + 2] = '0', sub(name, 1, stop) .. '1' .. sub(name, stop + 1)
      end
      for number = 1, count do
        local event = all and number or from_bytes('>I2', which, number * 2 + 1)
        local place = places[event]
        if first == ZERO then
          first, free = place, free or {}
          local consumer = sub(name, 1, stop - 1)
          local list = free[consumer] or {}
          free[consumer] = list
          list[#list + 1], list[#list + 2] = before + event, place .. '1' .. sub(name, stop + 1)
        else
          changed[put + 1], changed[put + 2] = link .. tail, place
          put = put + 2
        end
        tail = place
      end
      changed[put + 1] = args[lanes_at + at]
      changed[put + 2] = first .. tail .. (record and sub(record, 17) or pack('>I8', clear))
      values[1 + events + at] = changed[put + 2]
      put = put + 2
    end
  end
  for at = 1, singles do
    local which = args[single_args + at]
    local all = #which == 3
    local consumer = sub(args[consumers_at + from_bytes('>I2', which)], 2)
    free, order = free or {}, order or {}
    local list = free[consumer] or {}
    free[consumer] = list
    for number = 1, all and events or #which / 2 - 1 do
      local event = all and number or from_bytes('>I2', which, number * 2 + 1)
      list[#list + 1], list[#list + 2] = before + event, places[event] .. '0'
      order[#order + 1], order[#order + 2] = '0', consumer .. '\0' .. '3' .. places[event]
    end
  end
  if free then
    for consumer, list in pairs(free) do
      each_many('ZADD', base .. 'f' .. lifetime .. '\0' .. consumer, list)
      count_live(consumer, #list / 2)
    end
  end
  if order then
    each_many('ZADD', base .. 'o' .. lifetime, order)
  end
  head = before + events
  return entries
end
