-- The partition's sessions with timers due in a range, in order of due time and session: from when,
-- after this session of those (empty: all), through when, limit. Answers 'due', whether there are more,
-- and for each when and the session. It may answer fewer than there are, or none, and say so.

local from, after, through, limit = tonumber(take()), take(), tonumber(take()), tonumber(take())
local rank = call('ZCOUNT', KEYS[1], '-inf', format('(%d', from))
if after ~= '' then
  -- Past everything of that session: no name has U+0000.
  rank = rank_of(KEYS[1], rank, call('ZCOUNT', KEYS[1], '-inf', from), after .. '\1')
end
local answer, last_at, last_name = { 'due', 0 }
local looks, page = CALLS, 64
while true do
  local members = call('ZRANGE', KEYS[1], rank, rank + page - 1, 'WITHSCORES')
  for pair = 1, #members, 2 do
    local at = tonumber(members[pair + 1])
    if at > through then
      return answer
    end
    local name = session_of(members[pair])
    looks = looks - 1
    if name then
      rank = rank + 1
      if at ~= last_at or name ~= last_name then
        if #answer >= 2 + limit * 2 then
          answer[2] = 1
          return answer
        end
        last_at, last_name = at, name
        answer[#answer + 1] = at
        answer[#answer + 1] = name
      end
    end
  end
  if #members < page * 2 then
    return answer
  end
  if looks <= 0 then
    answer[2] = 1
    return answer
  end
end
