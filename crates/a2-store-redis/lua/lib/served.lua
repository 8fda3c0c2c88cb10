-- What the caller serves: the number of entries (-1: everything), and for each its consumer, failure
-- budget (empty: none), whether it declares a log (0 or 1), and if it does the log's name, whether it
-- backfills and its types.

local function take_served()
  local count = tonumber(take())
  if count < 0 then
    return nil
  end
  local served = {}
  for at = 1, count do
    local entry = { consumer = take(), budget = tonumber(take()) }
    if take() == '1' then
      entry.log, entry.backfill, entry.types = take(), take() == '1', take()
    end
    served[at] = entry
  end
  return served
end

-- Whether a served consumer has a live head; after what was done.
local function has_pending(served)
  if not served then
    return live > 0 and 1 or 0
  end
  if live == 0 or #served == 0 then
    return 0
  end
  local names = {}
  for at, entry in ipairs(served) do
    names[at] = entry.consumer
  end
  for _, count in ipairs(call('HMGET', life_key('s'), unpack(names))) do
    if count and tonumber(count) > 0 then
      return 1
    end
  end
  return 0
end
