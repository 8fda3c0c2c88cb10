-- Appends the events of due timers, in order of due time and key: what is served, with the limit. What
-- does not fit a batch waits for the next call; an id that is owned already counts as fired. Answers
-- 'fired' (head, clear, at, pending, entries) or 'full'.

local limit = tonumber(ARGV[5])
local function due_in(where)
  local keys, due = call('ZRANGEBYSCORE', where('t'), '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit), {}
  for at = 1, #keys, 2 do
    due[#due + 1] = { key = keys[at], at = tonumber(keys[at + 1]), where = where }
  end
  return due
end
local due = merged(due_in(BOUND), due_in(KEPT), limit, function(a, b)
  if a.at ~= b.at then
    return a.at < b.at
  end
  return is_before(a.key, b.key)
end)

local fired, found, ids = { [BOUND] = {}, [KEPT] = {} }, {}, {}
local bytes, targets = 0, 0
for at, timer in ipairs(due) do
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
local fields = {}
for at, event in ipairs(found) do
  fields[at] = 'i' .. event.id
end
local owned, new = #fields > 0 and get_many(KEYS[1], fields) or {}, {}
for at, event in ipairs(found) do
  if not owned[at] then
    new[#new + 1] = event
  end
end
if head + #new > 9007199254740991 then
  return { 'full' }
end
remove_timers(BOUND, fired[BOUND])
remove_timers(KEPT, fired[KEPT])
local before, entries = head, {}
if #new > 0 then
  batch_of(new)
  store_all()
end
finish()
events_between(before, head, #new, math.huge, entries)
return { 'fired', head, clear, now, has_pending(), entries }
