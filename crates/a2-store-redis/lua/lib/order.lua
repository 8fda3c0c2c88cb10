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

-- Two lists in order as one, up to the limit; answers also whether that leaves some out.
local function merged(a, b, limit, precedes)
  local all, i, j = {}, 1, 1
  while #all < limit and (a[i] or b[j]) do
    if not b[j] or (a[i] and precedes(a[i], b[j])) then
      all[#all + 1] = a[i]
      i = i + 1
    else
      all[#all + 1] = b[j]
      j = j + 1
    end
  end
  return all, (a[i] or b[j]) and 1 or 0
end
