-- What a claim serves: the number of consumers (-1: everything), and those, for each its failure budget
-- (empty: none), the number of declared logs, and for each its consumer, name and types.

local function take_served()
  local count = tonumber(take())
  if count < 0 then
    return nil
  end
  local claimed = { names = {}, budgets = {}, logs = {} }
  for at = 1, count do
    claimed.names[at] = take()
  end
  for at = 1, count do
    claimed.budgets[claimed.names[at]] = tonumber(take())
  end
  for at = 1, tonumber(take()) do
    claimed.logs[at] = { consumer = take(), log = take(), types = take() }
  end
  return claimed
end
