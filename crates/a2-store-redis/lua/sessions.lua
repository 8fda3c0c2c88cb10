-- A page of the partition's sessions: after this name (empty: from the first), limit. Answers
-- 'sessions', and for each its name, head and clear.

local after, limit = take(), tonumber(take())
local from = after == '' and '-' or '(' .. after
local answer = { 'sessions' }
for _, name in ipairs(call('ZRANGEBYLEX', base .. 'S', from, '+', 'LIMIT', 0, limit)) do
  local head, clear = state_of(name)
  local size = #answer
  answer[size + 1], answer[size + 2], answer[size + 3] = name, head, clear
end
return answer
