-- A page of the partition's pending sessions: after this name (empty: from the first), how many to look
-- at, number of served consumers (-1: all), and those. Answers 'pending', whether there are more, the
-- last name that was looked at, and for each session where they or a timer have something to do its
-- name and when that is at the earliest. Sessions without either go from the list.

local after, limit, count = take(), tonumber(take()), tonumber(take())
local consumers = count >= 0 and {} or nil
for at = 1, count do
  consumers[at] = take()
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
  local known, found, fields = consumers, {}, {}
  calls = calls - 2
  if not known then
    known = call('ZRANGE', life_key_of('h', name, life), 0, MANY)
    if #known > MANY then
      return nil
    end
  end
  calls = calls - floor(#known / 16)
  for at, consumer in ipairs(known) do
    fields[at] = 's' .. consumer
  end
  for at, number in ipairs(#fields > 0 and call('HMGET', key_of('m', name), unpack(fields)) or {}) do
    if number and tonumber(number) > 0 then
      found[#found + 1] = known[at]
    end
  end
  return found
end

-- Nothing is pending in a session: it is taken off the list. Should that be refused, it stays.
local function forget(name, head, clear, pinned)
  local key, done = key_of('m', name), nil
  if head == 0 then
    done = redis.pcall('UNLINK', key)
  else
    done = redis.pcall('HSET', key, 'h', pack(STATE, head, clear, 0, pinned, 0))
  end
  if type(done) ~= 'table' then
    redis.pcall('ZREM', base .. 'P', name)
  end
end

local function not_before(name)
  calls = calls - 1
  local head, clear, live, pinned = state_of(name)
  local soonest = first_of(life_key_of('t', name, clear), first_of(key_of('t', name)))
  if live == 0 then
    if not soonest then
      calls = calls - 2
      forget(name, head, clear, pinned)
    end
    return soonest
  end
  local found = live_consumers(name, clear)
  if not found then
    return math.min(soonest or now, now)
  end
  for _, consumer in ipairs(found) do
    local set = life_key_of('f', name, clear) .. '\0' .. consumer
    calls = calls - 1
    -- Free heads stand by their index, after the held ones by their expiry less 2^53.
    local score = tonumber(call('ZRANGE', set, -1, -1, 'WITHSCORES')[2])
    if score and score > 0 then
      return math.min(soonest or now, now)
    elseif score then
      local expires = tonumber(call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]) + 9007199254740992
      soonest = math.min(soonest or expires, expires)
    end
  end
  return soonest
end

local from = after == '' and '-' or '(' .. after
local names = call('ZRANGEBYLEX', base .. 'P', from, '+', 'LIMIT', 0, limit)
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
