-- Makes leases last: holder, ttl, the number of claims, and for each the attempt and the head. Answers
-- for each 1 (renewed), 2 (superseded) or 0.

local holder, ttl, count = take(), tonumber(take()), tonumber(take())
local outcomes, rows, held = {}, {}, {}
for at = 1, count do
  local attempt, name = tonumber(take()), take()
  local what, row = place(name)
  outcomes[at] = 0
  if what == 'cleared' or what == 'done' or what == 'passed' then
    outcomes[at] = 2
  elseif what == 'row' then
    if row.attempts > attempt then
      outcomes[at] = 2
    elseif row.status == LIVE and row.attempts == attempt and row.holder == holder
      and row.expires > now
    then
      local kind, consumer, cursor, index = split(name)
      row.expires = now + ttl
      add(rows, row_key(index), name, write_row(row))
      add(held, consumer, row.expires - HELD, member_of(kind, cursor, index))
      outcomes[at] = 1
    end
  end
end
for key, list in pairs(rows) do
  each_many('HSET', key, list)
end
for consumer, list in pairs(held) do
  each_many('ZADD', named_key('f', consumer), list)
end
return outcomes
