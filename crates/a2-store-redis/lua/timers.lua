-- A page of the timers in the order of their keys: after this key (empty: from the first), limit.
-- Answers 'timers', whether there are more, and for each its key and record.

local after, limit = take(), tonumber(take())
local found = {}
for _, where in ipairs({ BOUND, KEPT }) do
  local from = after == '' and '-' or '(' .. after
  for _, key in ipairs(call('ZRANGEBYLEX', where('c'), from, '+', 'LIMIT', 0, limit + 1)) do
    found[#found + 1] = { key = key, where = where }
  end
end
table.sort(found, function(a, b)
  return is_before(a.key, b.key)
end)
local answer, bytes = { 'timers', #found > limit and 1 or 0 }, READ_BYTES
for at = 1, math.min(#found, limit) do
  if bytes < 0 then
    answer[2] = 1
    break
  end
  local record = call('HGET', found[at].where('v'), found[at].key)
  bytes = bytes - #record
  answer[#answer + 1] = found[at].key
  answer[#answer + 1] = record
end
return answer
