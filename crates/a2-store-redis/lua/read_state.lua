-- A reducer's newest snapshot and the events after it: reducer, events through this index, no snapshot
-- above this one. Answers 'state', head, clear, the latest snapshot's index, the snapshot's index and
-- state, each or nothing, and the events; or 'corrupt' and the index of a missing event.

local reducer, through, below = take(), tonumber(take()), tonumber(take())
local order = named_key('z', reducer)
local latest = tonumber(call('ZREVRANGE', order, 0, 0)[1])
local index = latest
if latest and latest > below then
  index = tonumber(call('ZREVRANGEBYSCORE', order, below, '-inf', 'LIMIT', 0, 1)[1])
end
local state = index and call('HGET', named_key('Z', reducer), format('%d', index))
local entries = {}
local _, missing =
  events_between(math.max(index or 0, clear - 1, 0), math.min(through, head), 10000, READ_BYTES, entries)
if missing then
  return { 'corrupt', missing }
end
return { 'state', head, clear, latest or false, index or false, state or false, entries }
