-- Reads events: after, through, limit. Answers 'read', head, clear, entries; or 'corrupt' and an index.

local after, through, limit = tonumber(take()), tonumber(take()), tonumber(take())
local entries = {}
local _, missing =
  events_between(math.max(after, clear - 1, 0), math.min(through, head), limit, READ_BYTES, entries)
if missing then
  return { 'corrupt', missing }
end
return { 'read', head, clear, entries }
