-- A page of the timers in the order of their keys: after this key (empty: from the first), limit.
-- Answers 'timers', whether there are more, and for each its key and record.

local after, limit = take(), tonumber(take())
local function keys_in(where)
  local from, found = after == '' and '-' or '(' .. after, {}
  for at, key in ipairs(call('ZRANGEBYLEX', where('c'), from, '+', 'LIMIT', 0, limit + 1)) do
    found[at] = { key = key, where = where }
  end
  return found
end
local found, more = merged(keys_in(BOUND), keys_in(KEPT), limit, function(a, b)
  return is_before(a.key, b.key)
end)
local answer, bytes = { 'timers', more }, READ_BYTES
for at = 1, #found do
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
