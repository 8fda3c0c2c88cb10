-- Pins: which snapshots a head keeps. A hash of heads holds for each its pins, a reducer and an index
-- after the other; another counts the pins of each snapshot.

local function read_pins(bytes)
  local pins, at = {}, 1
  while at <= #bytes do
    local size = from_bytes('>I2', bytes, at)
    local reducer = string.sub(bytes, at + 2, at + 1 + size)
    pins[#pins + 1] = { reducer = reducer, index = (from_bytes('>I8', bytes, at + 2 + size)) }
    at = at + 10 + size
  end
  return pins
end

local function write_pin(reducer, index)
  return pack('>I2', #reducer) .. reducer .. pack('>I8', index)
end

-- Removes a head's pins, and the snapshots that only they kept.
local function release_pins(name)
  local bytes = pinned > 0 and call('HGET', life_key('k'), name)
  if not bytes then
    return
  end
  call('HDEL', life_key('k'), name)
  pinned = pinned - 1
  for _, pin in ipairs(read_pins(bytes)) do
    local field, snapshot = write_pin(pin.reducer, pin.index), format('%d', pin.index)
    if call('HINCRBY', life_key('j'), field, -1) <= 0 then
      call('HDEL', life_key('j'), field)
      local latest = call('ZREVRANGE', named_key('z', pin.reducer), 0, 0)
      if latest[1] ~= snapshot then
        call('ZREM', named_key('z', pin.reducer), snapshot)
        call('HDEL', named_key('Z', pin.reducer), snapshot)
      end
    end
  end
end
