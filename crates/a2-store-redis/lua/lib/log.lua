-- The log: lists of 1,000 entries. An entry is a header, the event's id, type, cause and payload.
-- A payload of more than BIG bytes is a key of its own, so that the reading of many entries stays
-- bounded.

local HEADER = '>I8i8I2I2I4I4'
local HEADER_BYTES = 28
local BIG = 32768
-- A read, claim or state read stops after the event with which this many payload bytes are passed.
local READ_BYTES = 16777216

local function place_in_chunk(index, chunk)
  return index - math.max(chunk * CHUNK, clear, 1)
end

local function big_key(index)
  return named_key('e', format('%d', index))
end

-- The entry of an index with its payload, and the payload's size; nothing when it is not there, or
-- another one is in its place.
local function whole(entry, index)
  if #entry < HEADER_BYTES or from_bytes('>I8', entry) ~= index then
    return nil
  end
  local size = from_bytes('>I4', entry, 25)
  if size <= BIG then
    return entry, size
  end
  local payload = call('GET', big_key(index))
  if payload then
    return entry .. payload, size
  end
end

-- The event at an index.
local function event_at(index)
  local chunk = floor(index / CHUNK)
  local entry = call('LINDEX', chunk_key('l', chunk), place_in_chunk(index, chunk))
  if entry then
    return whole(entry, index)
  end
end

-- Appends to `found` the events in (after, through], at most `limit` and none after the one with which
-- `bytes` are passed; answers the bytes that are left, and the index that is missing, if one is.
local function events_between(after, through, limit, bytes, found)
  local index, last = after + 1, math.min(through, after + limit)
  while index <= last do
    local chunk = floor(index / CHUNK)
    local first = place_in_chunk(index, chunk)
    local count = math.min(last, (chunk + 1) * CHUNK - 1, index + 255) - index + 1
    local entries = call('LRANGE', chunk_key('l', chunk), first, first + count - 1)
    for at = 1, count do
      local entry, size
      if entries[at] then
        entry, size = whole(entries[at], index)
      end
      if not entry then
        return bytes, index
      end
      found[#found + 1] = entry
      bytes = bytes - size
      index = index + 1
      if bytes < 0 then
        return bytes
      end
    end
  end
  return bytes
end
