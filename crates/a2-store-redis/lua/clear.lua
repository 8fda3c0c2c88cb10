-- Starts a new lifetime: the marker's id, the head that must be (empty: any), the attempt that must be
-- current (empty: none). Answers 'cleared', 'already', 'not_last', 'superseded_attempt' or 'full', with
-- head and clear. What lies below is put away whole, for reclaim.

local id, expected, cause = take(), tonumber(take()), take()
if clear > 0 and (expected and expected + 1 == clear
  or call('HGET', KEYS[1], 'i' .. id) == pack('>I8', clear))
then
  return { 'already', head, clear }
end
if cause ~= '' and not is_current(cause) then
  return { 'superseded_attempt', head, clear }
end
if expected and expected ~= head then
  return { 'not_last', head, clear }
end
if head == clear then
  return { 'already', head, clear }
end
if head + 1 > 9007199254740991 then
  return { 'full', head, clear }
end
-- Which lifetime, its last index, and how far reclaim got.
call('RPUSH', session_key('u'), pack('>I8I8I8', clear, head, 0))
call('RENAME', KEYS[1], life_key('m'))
head = head + 1
clear = head
lifetime = session .. '\0' .. format('%d', clear)
live, pinned, counts = 0, 0, {}
local entry = pack(HEADER, head, now, #id, 8, 0, 4) .. id .. 'a2.clearnull'
call('RPUSH', chunk_key('l', floor(head / CHUNK)), entry)
changed[1], changed[2], put = 'i' .. id, pack('>I8', head), 2
drop_ahead()
finish()
publish('a', head, { entry })
return { 'cleared', head, clear }
