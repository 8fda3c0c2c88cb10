-- A plain batch of several events.

if is_plain and events > 0 then
  local first = head + 1
  local entries = store()
  finish()
  publish('a', first, entries, bigs > 0)
  return { 'appended', head, clear, now, has_pending() }
end
