-- Where the logs of sessions of the partition stand: their names. Answers 'heads', and for each its head
-- and clear.

local answer = { 'heads' }
for at = 1, tonumber(take()) do
  local state = call('HMGET', key_of('m', take()), 'head', 'clear')
  answer[at * 2] = tonumber(state[1] or nil) or 0
  answer[at * 2 + 1] = tonumber(state[2] or nil) or 0
end
return answer
