-- When the partition's first timer is due after a time. Answers 'next', the time now, when that timer is
-- due or nothing, and whether there may be one that was not looked at.

local after = format('(%d', tonumber(take()))
local looks, page = CALLS, 16
while looks > 0 do
  local members = call('ZRANGEBYSCORE', KEYS[1], after, '+inf', 'WITHSCORES', 'LIMIT', 0, page)
  for pair = 1, #members, 2 do
    if session_of(members[pair]) then
      return { 'next', now, tonumber(members[pair + 1]), 0 }
    end
  end
  if #members < page * 2 then
    return { 'next', now, false, 0 }
  end
  looks = looks - page
end
return { 'next', now, false, 1 }
