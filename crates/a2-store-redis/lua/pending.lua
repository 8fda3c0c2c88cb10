-- A page of the partition's pending sessions: after this name (empty: from the first), how many to look
-- at, number of served consumers (-1: all), and those. Answers 'pending', whether there are more, the
-- last name that was looked at, and for each session where they or a timer have something to do its
-- name and when that is at the earliest.

local after, limit, count = take(), tonumber(take()), tonumber(take())
local consumers, served = count >= 0 and {} or nil, {}
for at = 1, count do
  consumers[at] = take()
  served[consumers[at]] = true
end
local calls = CALLS
-- More consumers than this are not looked at one by one.
local MANY = 256

-- The soonest score of a sorted set, or `soonest`.
local function first_of(key, soonest)
  calls = calls - 1
  local score = tonumber(call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
  return score and math.min(score, soonest or score) or soonest
end

-- The served consumers that have a live head in a session; nothing when there are too many.
local function live_consumers(name, life)
  local counted, found = life_key_of('s', name, life), {}
  local size = call('HLEN', counted)
  calls = calls - 2
  if consumers and size > #consumers then
    calls = calls - floor(#consumers / 16)
    for at, number in ipairs(#consumers > 0 and call('HMGET', counted, unpack(consumers)) or {}) do
      if number and tonumber(number) > 0 then
        found[#found + 1] = consumers[at]
      end
    end
    return found
  end
  if size > MANY then
    return nil
  end
  calls = calls - floor(size / 16)
  local counts = call('HGETALL', counted)
  for at = 1, #counts, 2 do
    if tonumber(counts[at + 1]) > 0 and (not consumers or served[counts[at]]) then
      found[#found + 1] = counts[at]
    end
  end
  return found
end

local function not_before(name)
  calls = calls - 1
  local state = call('HMGET', key_of('m', name), 'clear', 'live')
  local life, live = tonumber(state[1] or nil) or 0, tonumber(state[2] or nil) or 0
  local soonest = first_of(life_key_of('t', name, life), first_of(key_of('t', name)))
  if live == 0 then
    return soonest
  end
  local found = live_consumers(name, life)
  if not found then
    return math.min(soonest or now, now)
  end
  for _, consumer in ipairs(found) do
    calls = calls - 1
    if call('EXISTS', life_key_of('f', name, life) .. '\0' .. consumer) == 1 then
      return math.min(soonest or now, now)
    end
    soonest = first_of(life_key_of('b', name, life) .. '\0' .. consumer, soonest)
  end
  return soonest
end

local from = after == '' and '-' or '(' .. after
local names = call('ZRANGEBYLEX', KEYS[3], from, '+', 'LIMIT', 0, limit)
local answer = { 'pending', #names == limit and 1 or 0, after }
for _, name in ipairs(names) do
  if calls <= 0 then
    answer[2] = 1
    break
  end
  answer[3] = name
  local at = not_before(name)
  if at then
    answer[#answer + 1] = name
    answer[#answer + 1] = at
  end
end
return answer
