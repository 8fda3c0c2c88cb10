-- Timers, in two places. Those that every later clear drops stand in the lifetime's keys, so that a
-- clear puts them away whole; those without an origin, or with one that was above the log's head, stand
-- in the session's.
--
-- `t` has the keys by due time, `c` by name, `v` a record for each. The session's `a` has those with an
-- origin by it. The partition has all of them by due time: session, U+0000, `k` or `b` and the lifetime
-- in 8 bytes, key. Entries of an earlier lifetime are left there: whoever finds one knows it by that.

local KEPT, BOUND = session_key, life_key
-- Due time, origin (-1: none), sizes of the event's id, type and payload, number of targets.
local TIMER = '>i8i8I2I2I4I2'

local function due_member(where, key)
  local life = where == BOUND and 'b' .. pack('>I8', clear) or 'k'
  return string.sub(session, 2) .. '\0' .. life .. key
end

-- A timer's event as the caller gives it: id, type, payload, number of targets, and those: kind (0 event,
-- 1 lane), consumer, U+0000, lane.
local function take_event()
  local event = { id = take(), type = take(), payload = take() }
  local count = tonumber(take())
  if count > 0 then
    event.targets = {}
    for target = 1, count do
      event.targets[target] = take()
    end
  end
  return event
end

local function write_timer(due, origin, event)
  local parts = {
    pack(TIMER, due, origin or -1, #event.id, #event.type, #event.payload, #(event.targets or {})),
    event.id, event.type, event.payload,
  }
  for _, target in ipairs(event.targets or {}) do
    parts[#parts + 1] = pack('>I2', #target)
    parts[#parts + 1] = target
  end
  return table.concat(parts)
end

-- The event of a timer.
local function event_of(record)
  local _, _, id, event_type, payload, targets, at = from_bytes(TIMER, record)
  local event = {}
  event.id = string.sub(record, at, at + id - 1)
  at = at + id
  event.type = string.sub(record, at, at + event_type - 1)
  at = at + event_type
  event.payload = string.sub(record, at, at + payload - 1)
  at = at + payload
  if targets > 0 then
    event.targets = {}
  end
  for target = 1, targets do
    local size = from_bytes('>I2', record, at)
    event.targets[target] = string.sub(record, at + 2, at + 1 + size)
    at = at + 2 + size
  end
  return event
end

local function remove_timers(where, keys)
  if #keys == 0 then
    return
  end
  local members = {}
  for at, key in ipairs(keys) do
    members[at] = due_member(where, key)
  end
  each_many('ZREM', where('t'), keys)
  each_many('ZREM', where('c'), keys)
  each_many('HDEL', where('v'), keys)
  each_many('ZREM', base .. 'T', members)
  if where == KEPT then
    each_many('ZREM', session_key('a'), keys)
  end
end

-- Removes the timer of this key; answers whether there was one.
local function remove_timer(key)
  for _, where in ipairs({ BOUND, KEPT }) do
    if call('ZSCORE', where('t'), key) then
      remove_timers(where, { key })
      return true
    end
  end
  return false
end

local function put_timer(key, due, origin, event)
  local where = origin and origin <= head and BOUND or KEPT
  remove_timer(key)
  call('ZADD', where('t'), due, key)
  call('ZADD', where('c'), 0, key)
  call('HSET', where('v'), key, write_timer(due, origin, event))
  call('ZADD', base .. 'T', due, due_member(where, key))
  if where == KEPT and origin then
    call('ZADD', session_key('a'), origin, key)
  end
  if listed == 0 then
    call('ZADD', base .. 'P', 0, sub(session, 2))
    listed = 1
  end
end

-- After a clear: removes the timers whose origin was above the log's head when they were set, and is
-- below the marker now.
local function drop_ahead()
  local below, limit = format('(%d', clear), 1000
  repeat
    local keys = call('ZRANGEBYSCORE', session_key('a'), '-inf', below, 'LIMIT', 0, limit)
    remove_timers(KEPT, keys)
  until #keys < limit
end
