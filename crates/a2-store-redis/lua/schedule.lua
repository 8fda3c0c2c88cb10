-- Sets a timer: key, after how many ms it is due, origin (empty: none), its event as a batch of one.
-- Answers 'scheduled' with when it is due, or 'session_cleared' with head and clear.

local key, due, origin = take(), now + tonumber(take()), tonumber(take())
local event = take_events()[1]
if origin and origin < clear then
  return { 'session_cleared', head, clear }
end
put_timer(key, due, origin, event)
if ARGV[2] ~= '' then
  redis.pcall(ARGV[2], ARGV[3], 't' .. ARGV[4] .. pack('>i8', due) .. string.sub(session, 2))
end
return { 'scheduled', due }
