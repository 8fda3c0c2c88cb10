-- Appends a batch: the batch, with the expected head and the origin (empty: none). Answers 'appended'
-- (head, clear, at, pending), 'replayed' (head, clear, at, pending, entries), 'partial_duplicate' (ids),
-- 'head_conflict', 'session_cleared', 'superseded_attempt', 'full', 'corrupt' (index).

local expected, origin = tonumber(ARGV[5]), tonumber(ARGV[6])
if events == 0 then
  return { 'appended', head, clear, now, has_pending() }
end
local owned, count = owners()
if count == events then
  local entries = {}
  for at, index in ipairs(owned) do
    entries[at] = event_at(index)
    if not entries[at] then
      return { 'corrupt', index }
    end
  end
  return { 'replayed', head, clear, now, has_pending(), entries }
end
if count > 0 then
  return { 'partial_duplicate', owned_ids() }
end
if expected and expected ~= head then
  return { 'head_conflict', head, clear }
end
if origin and origin < clear then
  return { 'session_cleared', head, clear }
end
for at = 1, causes do
  if not is_current(args[cause_args + at]) then
    return { 'superseded_attempt' }
  end
end
if head + events > 9007199254740991 then
  return { 'full' }
end
store_all()
finish()
return { 'appended', head, clear, now, has_pending() }
