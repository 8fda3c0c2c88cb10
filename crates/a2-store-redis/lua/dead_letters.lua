-- A page of the dead letters, in the order of heads: after this head (empty: from the first), limit.
-- Answers 'dead_letters', whether there are more, and for each its name, event, row and error; or
-- 'corrupt' and the index of a missing event.

local after, limit = take(), tonumber(take())
local dead, from = life_key('x'), 0
if after ~= '' then
  local kind, consumer, cursor, index = split(after)
  from = call('ZCOUNT', dead, '-inf', format('(%d', index))
  local to = call('ZCOUNT', dead, '-inf', index)
  -- Past the head itself: no name has U+0000.
  from = rank_of(dead, from, to, dead_member(kind, consumer, cursor, index) .. '\0')
end
local members = call('ZRANGE', dead, from, from + limit, 'WITHSCORES')
local answer, bytes = { 'dead_letters', #members / 2 > limit and 1 or 0 }, READ_BYTES
for at = 1, math.min(#members / 2, limit) do
  if bytes < 0 then
    answer[2] = 1
    break
  end
  local member, index = members[at * 2 - 1], tonumber(members[at * 2])
  local stop = string.find(member, '\0', 1, true)
  local name = head_name(
    string.sub(member, stop + 1, stop + 1), string.sub(member, 1, stop - 1),
    string.sub(member, stop + 2, -10), index
  )
  local event, size = event_at(index)
  if not event then
    return { 'corrupt', index }
  end
  local row, text = unpack(call('HMGET', row_key(index), name, '!' .. name))
  bytes = bytes - size - (text and #text or 0)
  answer[#answer + 1] = { name, event, row, text }
end
return answer
