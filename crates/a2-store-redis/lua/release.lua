-- Gives claims back: holder, the number of claims, and for each the attempt and the head. Answers for
-- each whether it was released, 1 or 0.

local holder, count = take(), tonumber(take())
local outcomes, rows, free = {}, {}, {}
local seen = {}
for at = 1, count do
  local attempt, name = tonumber(take()), take()
  local what, row = place(name)
  outcomes[at] = 0
  if what == 'row' and row.status == LIVE and row.attempts == attempt and row.holder == holder
    and not seen[name]
  then
    local kind, consumer, cursor, index = split(name)
    seen[name] = true
    row.holder, row.expires = false, false
    add(rows, row_key(index), name, write_row(row))
    add(free, consumer, index, member_of(kind, cursor, index))
    outcomes[at] = 1
  end
end
for key, list in pairs(rows) do
  each_many('HSET', key, list)
end
for consumer, list in pairs(free) do
  each_many('ZADD', named_key('f', consumer), list)
end
if next(free) then
  publish('h', head, {})
end
return outcomes
