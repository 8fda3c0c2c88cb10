-- Sets and removes a participant's fields. The key is the namespace's. Namespace, participant, what it has seen (-1: nothing), ttl in ms,
-- the number of fields, and for each its name, 1 and a value or 0. Answers 'set', when, when the fields
-- go, whether a field that did not change goes sooner than before, the fields that changed and those
-- that were removed.
--
-- A namespace is a hash of participant, U+0000 and field: when it goes, when it was written, seen, the
-- value. A second key has the fields by when they go.

local ROW = '>i8i8i8'
-- How many expired fields a write drops.
local SWEPT = 64
-- Values are told up to so many bytes together; longer ones are read.
local INLINE = 65536

local fields, by_expiry = KEYS[1], base .. 'x' .. string.sub(KEYS[1], #base + 2)
local namespace, participant, seen = take(), take(), tonumber(take())
local expires = now + tonumber(take())
local names, values = {}, {}
for at = 1, tonumber(take()) do
  names[at] = participant .. '\0' .. take()
  values[at] = take() == '1' and take()
end
if #names == 0 then
  return { 'set', now, expires, 0, {}, {} }
end

local rows, sooner = call('HMGET', fields, unpack(names)), 0
local put, order, removed, gone, changed = {}, {}, {}, {}, {}
local told, bytes = {}, 0
-- What others are told of a field: its name, and its value's length and text, -1 when it was removed.
local function tell(name, value)
  told[#told + 1] = { name = name, value = value }
  bytes = bytes + (value and #value or 0)
end
for at, name in ipairs(names) do
  local field, row = string.sub(name, #participant + 2), rows[at]
  local until_then, was_seen, value
  if row then
    local _, start
    until_then, _, was_seen, start = from_bytes(ROW, row)
    value = string.sub(row, start)
  end
  local there = row and until_then > now
  if values[at] then
    if there and value == values[at] and was_seen == seen then
      sooner = expires < until_then and 1 or sooner
    else
      changed[#changed + 1] = field
      tell(field, values[at])
    end
    put[#put + 1], put[#put + 2] = name, pack(ROW, expires, now, seen) .. values[at]
    order[#order + 1], order[#order + 2] = expires, name
  elseif row then
    gone[#gone + 1] = name
    if there then
      removed[#removed + 1] = field
      tell(field, false)
    end
  end
end
if #put > 0 then
  call('HSET', fields, unpack(put))
  call('ZADD', by_expiry, unpack(order))
end
for _, name in ipairs(call('ZRANGEBYSCORE', by_expiry, '-inf', now, 'LIMIT', 0, SWEPT)) do
  gone[#gone + 1] = name
end
if #gone > 0 then
  call('HDEL', fields, unpack(gone))
  call('ZREM', by_expiry, unpack(gone))
end
-- The server forgets the namespace with its last field, unless another clock judges.
local last = call('ZREVRANGE', by_expiry, 0, 0, 'WITHSCORES')[2]
if ARGV[1] ~= '' then
  call('PERSIST', fields)
  call('PERSIST', by_expiry)
elseif last then
  call('PEXPIREAT', fields, last)
  call('PEXPIREAT', by_expiry, last)
end

if ARGV[2] ~= '' and (#told > 0 or sooner == 1) then
  local message = {
    'p', ARGV[3],
    pack('>i8i8i8BI2I2I2', now, expires, seen, sooner, #namespace, #participant, #told),
    namespace, participant,
  }
  for _, field in ipairs(told) do
    local value = bytes <= INLINE and field.value or ''
    local size = field.value and (bytes <= INLINE and #value or -2) or -1
    message[#message + 1] = pack('>I2i4', #field.name, size) .. field.name .. value
  end
  redis.pcall(ARGV[2], base .. 'w', table.concat(message))
end
return { 'set', now, expires, sooner, changed, removed }
