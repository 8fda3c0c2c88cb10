-- Appends a batch: expected head and origin (empty: none), what is served, the events. Answers
-- 'appended' (head, clear, at, pending), 'replayed' (head, clear, at, pending, entries),
-- 'partial_duplicate' (ids), 'head_conflict', 'session_cleared', 'superseded_attempt', 'full',
-- 'corrupt' (index).

local expected, origin = tonumber(take()), tonumber(take())
local served = take_served()
local events = take_events()
if #events == 0 then
  return { 'appended', head, clear, now, has_pending(served) }
end
local found, count = owners(events)
if count == #events then
  local entries = {}
  for at, index in ipairs(found) do
    entries[at] = event_at(index)
    if not entries[at] then
      return { 'corrupt', index }
    end
  end
  return { 'replayed', head, clear, now, has_pending(served), entries }
end
if count > 0 then
  return { 'partial_duplicate', owned_ids(events, found) }
end
if expected and expected ~= head then
  return { 'head_conflict', head, clear }
end
if origin and origin < clear then
  return { 'session_cleared', head, clear }
end
for _, event in ipairs(events) do
  if event.cause ~= '' and not is_current(event.cause) then
    return { 'superseded_attempt' }
  end
end
if head + #events > 9007199254740991 then
  return { 'full' }
end
store(events, nil, served)
finish()
return { 'appended', head, clear, now, has_pending(served) }
