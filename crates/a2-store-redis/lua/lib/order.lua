-- The order of names: bytewise. What `<` compares is ordered by the server's locale.

local function is_before(a, b)
  for at = 1, math.min(#a, #b) do
    local x, y = string.byte(a, at), string.byte(b, at)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- The first rank from `low` up to `high` at which the sorted set's member is not before this one; those
-- at these ranks are in order. `high` when there is none.
local function rank_of(key, low, high, member)
  while low < high do
    local middle = floor((low + high) / 2)
    if is_before(call('ZRANGE', key, middle, middle)[1], member) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end
