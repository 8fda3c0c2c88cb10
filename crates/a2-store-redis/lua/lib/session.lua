-- The session of a script, in one hash of its lifetime: 'h' is its state, and 'i' and an event's id the
-- event's index in 8 bytes, 'n' and a lane's consumer, U+0000 and name the lane's head (0: idle), tail
-- and position in 8 bytes each, 's' and a consumer how many live heads it has, '>' and a lane's queued
-- head or event the next one's index in 8 bytes.

-- The state, and the fields that the arguments name, if any.
local values
if last_field < first_field then
  values = { (call('HGET', KEYS[1], 'h')) }
elseif last_field - first_field < 4000 then
  values = call('HMGET', KEYS[1], 'h', unpack(ARGV, first_field, last_field))
else
  values = { (call('HGET', KEYS[1], 'h')) }
  for first = first_field, last_field, 4000 do
    local last = math.min(first + 3999, last_field)
    for at, value in ipairs(call('HMGET', KEYS[1], unpack(ARGV, first, last))) do
      values[first - first_field + 1 + at] = value
    end
  end
end

-- The log's last index; the clear marker's (0 before any), which names the lifetime; how many heads are
-- live, how many pin snapshots; whether the partition lists the session as pending (1 or 0).
local STATE = '>I8I8I8I8B'
local head, clear, live, pinned, listed = 0, 0, 0, 0, 0
if values[1] then
  head, clear, live, pinned, listed = from_bytes(STATE, values[1])
end

-- U+0000 and the session's name, and what the keys of its lifetime have after their letter.
local session = sub(KEYS[1], #base + 2)
local lifetime = session .. '\0' .. format('%d', clear)

-- Fields of the session that change, with their values, and how many items these are.
local changed, put = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil }, 0
local head_before = head
