-- A page of the partition's sessions: after this name (empty: from the first), limit. Answers
-- 'sessions', and for each its name, head and clear.

local after, limit = take(), tonumber(take())
local from = after == '' and '-' or '(' .. after
local answer = { 'sessions' }
for _, name in ipairs(call('ZRANGEBYLEX', KEYS[2], from, '+', 'LIMIT', 0, limit)) do
  local state = call('HMGET', key_of('m', name), 'head', 'clear')
  answer[#answer + 1] = name
  answer[#answer + 1] = tonumber(state[1]) or 0
  answer[#answer + 1] = tonumber(state[2] or nil) or 0
end
return answer
