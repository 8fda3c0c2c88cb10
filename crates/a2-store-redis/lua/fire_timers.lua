-- Appends the events of due timers, in order of due time and key: limit, what is served. What does not
-- fit a batch waits for the next call; an id that is owned already counts as fired. Answers 'fired'
-- (head, clear, at, pending, entries) or 'full'.

local limit, served = tonumber(take()), take_served()
local due = {}
for _, where in ipairs({ BOUND, KEPT }) do
  local keys = call('ZRANGEBYSCORE', where('t'), '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
  for at = 1, #keys, 2 do
    due[#due + 1] = { key = keys[at], at = tonumber(keys[at + 1]), where = where }
  end
end
table.sort(due, function(a, b)
  if a.at ~= b.at then
    return a.at < b.at
  end
  return is_before(a.key, b.key)
end)

local fired, found, ids = { [BOUND] = {}, [KEPT] = {} }, {}, {}
local bytes, targets = 0, 0
for at = 1, math.min(#due, limit) do
  local timer = due[at]
  local record = call('HGET', timer.where('v'), timer.key)
  local event = event_of(record)
  bytes = bytes + #record
  targets = targets + #(event.targets or {})
  if at > 1 and (bytes > READ_BYTES or targets > 20000) then
    break
  end
  add(fired, timer.where, timer.key)
  if not ids[event.id] then
    ids[event.id] = true
    found[#found + 1] = event
  end
end
local events, owned = {}, (owners(found))
for at, event in ipairs(found) do
  if not owned[at] then
    events[#events + 1] = event
  end
end
if head + #events > 9007199254740991 then
  return { 'full' }
end
remove_timers(BOUND, fired[BOUND])
remove_timers(KEPT, fired[KEPT])
local before, entries = head, {}
store(events, nil, served)
finish()
if #due > 0 then
  forget_if_idle()
end
events_between(before, head, #events, math.huge, entries)
return { 'fired', head, clear, now, has_pending(served), entries }
