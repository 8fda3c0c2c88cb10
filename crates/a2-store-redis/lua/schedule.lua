-- Sets a timer: key, after how many ms it is due, origin (empty: none), its event.
-- Answers 'scheduled' with when it is due, or 'session_cleared' with head and clear.

local key, due, origin = take(), now + tonumber(take()), tonumber(take())
local event = take_event()
if origin and origin < clear then
  return { 'session_cleared', head, clear }
end
put_timer(key, due, origin, event)
finish()
if ARGV[2] ~= '' then
  redis.pcall(ARGV[2], base .. 'w', 't' .. ARGV[3] .. pack('>i8', due) .. string.sub(session, 2))
end
return { 'scheduled', due }
