-- Where the logs of sessions of the partition stand: their names. Answers 'heads', and for each its head
-- and clear.

local answer = { 'heads' }
for at = 1, tonumber(take()) do
  local head, clear = state_of(take())
  answer[at * 2], answer[at * 2 + 1] = head, clear
end
return answer
