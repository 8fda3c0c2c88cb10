-- Changing a session.

-- Calls a variadic command with many arguments, an even number at a time: Lua's stack holds 8,000.
local MOST = 4000
local function each_many(command, key, list, count)
  count = count or #list
  for first = 1, count, MOST do
    local last = first + MOST - 1
    call(command, key, unpack(list, first, last < count and last or count))
  end
end

-- How many live heads consumers have, as far as it is known, and whose number changed.
local counts, counted = {}, {}
local function count_live(consumer, by)
  if counts[consumer] == nil then
    counts[consumer] = tonumber(call('HGET', KEYS[1], 's' .. consumer) or nil) or false
  end
  if not counts[consumer] then
    -- Who has live heads, or had when it was looked last.
    call('ZADD', base .. 'h' .. lifetime, 0, consumer)
  end
  counts[consumer] = (counts[consumer] or 0) + by
  counted[consumer] = true
  live = live + by
end

-- The last thing that changes something: records the session's state, and which sessions there are and
-- which may be pending. Those that are not any more go from the list when it is looked at.
local function finish()
  if head_before == 0 and head > 0 then
    call('ZADD', base .. 'S', 0, sub(session, 2))
  end
  if live > 0 and listed == 0 then
    call('ZADD', base .. 'P', 0, sub(session, 2))
    listed = 1
  end
  for consumer in pairs(counted) do
    changed[put + 1], changed[put + 2] = 's' .. consumer, format('%d', counts[consumer])
    put = put + 2
  end
  local state = pack(STATE, head, clear, live, pinned, listed)
  if state ~= values[1] then
    changed[put + 1], changed[put + 2] = 'h', state
    put = put + 2
  end
  each_many('HSET', KEYS[1], changed, put)
end
