-- Keeps snapshots: reducer, the number of writes in the order of their indexes, and for each the index,
-- the state, the number of heads that pin it, and those. Answers 'put', the latest one's index or
-- nothing, and the indexes that are kept now; or 'above_head' with the place of the write and head.

local reducer, count = take(), tonumber(take())
local writes = {}
for at = 1, count do
  local write = { index = tonumber(take()), state = take(), pins = {} }
  for pin = 1, tonumber(take()) do
    write.pins[pin] = take()
  end
  writes[at] = write
end
for at, write in ipairs(writes) do
  if write.index > head then
    return { 'above_head', at, head }
  end
end
local order, states = named_key('z', reducer), named_key('Z', reducer)

local known = {}
local function is_live(name)
  if known[name] == nil then
    local kind, consumer, cursor, index = split(name)
    local row = index > clear and call('HGET', row_key(index), name)
    -- One that was never claimed has no row.
    known[name] = index > clear and (row and read_row(row).status == LIVE
      or not row and call('ZSCORE', named_key('f', consumer), member_of(kind, cursor, index)) and true)
  end
  return known[name]
end

-- What the heads pin with this call.
local pins_of = {}
local known_pins = {}
local function has_pin(name, field)
  local bytes = pins_of[name]
  if not bytes then
    bytes = call('HGET', life_key('k'), name)
    if not bytes then
      return false
    end
    pins_of[name] = bytes
  end
  -- Read once a call, however many writes name the head.
  local fields = known_pins[name]
  if not fields then
    fields = {}
    for _, pin in ipairs(read_pins(bytes)) do
      fields[write_pin(pin.reducer, pin.index)] = true
    end
    known_pins[name] = fields
  end
  return fields[field] or false
end

local function add_pins(write)
  local field, added = write_pin(reducer, write.index), 0
  for _, name in ipairs(write.pins) do
    if is_live(name) and not has_pin(name, field) then
      if not pins_of[name] then
        pinned = pinned + 1
      end
      pins_of[name] = (pins_of[name] or '') .. field
      if known_pins[name] then
        known_pins[name][field] = true
      end
      added = added + 1
    end
  end
  if added > 0 then
    call('HINCRBY', life_key('j'), field, added)
  end
end

local function is_pinned(index)
  return call('HEXISTS', life_key('j'), write_pin(reducer, index)) == 1
end

local latest = tonumber(call('ZREVRANGE', order, 0, 0)[1])
if not latest and count > 0 then
  call('SADD', life_key('r'), 'z' .. reducer)
end
local stored = {}
for _, write in ipairs(writes) do
  local index, field = write.index, format('%d', write.index)
  if index >= clear then
    add_pins(write)
    if not latest or index >= latest or is_pinned(index) then
      call('ZADD', order, index, field)
      call('HSET', states, field, write.state)
      stored[#stored + 1] = index
    end
    if not latest or index > latest then
      local older = latest
      latest = index
      if older and not is_pinned(older) then
        call('ZREM', order, format('%d', older))
        call('HDEL', states, format('%d', older))
        for at = #stored, 1, -1 do
          if stored[at] == older then
            table.remove(stored, at)
          end
        end
      end
    end
  end
end
local pins = {}
for name, bytes in pairs(pins_of) do
  pins[#pins + 1] = name
  pins[#pins + 1] = bytes
end
each_many('HSET', life_key('k'), pins)
finish()
return { 'put', latest or false, stored }
