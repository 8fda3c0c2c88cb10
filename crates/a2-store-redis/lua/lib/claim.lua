-- Claiming heads.

-- A claim: holder, ttl, limit, through, run, failure budget (empty: none), what is served, the number
-- of excluded cursors, and those: kind, consumer, U+0000, name, and for an event's cursor U+0000 and
-- its index.
local function take_claim()
  local claim = {
    holder = take(), ttl = tonumber(take()), limit = tonumber(take()), through = tonumber(take()),
    run = tonumber(take()), budget = tonumber(take()), served = take_served(),
  }
  local count = tonumber(take())
  if count > 0 then
    claim.excluded = {}
    for _ = 1, count do
      claim.excluded[take()] = true
    end
  end
  return claim
end

-- How many of the longest due heads of each consumer take part.
local DUE_WINDOW = 256

-- Of all consumers those that may have a live head, in order. Who has none any more is forgotten.
local function live_consumers()
  local known, names, from = life_key('h'), {}, '-'
  while true do
    local page, gone, fields = call('ZRANGEBYLEX', known, from, '+', 'LIMIT', 0, 1000), {}, {}
    if #page == 0 then
      return names
    end
    for at, name in ipairs(page) do
      fields[at] = 's' .. name
    end
    for at, count in ipairs(call('HMGET', KEYS[1], unpack(fields))) do
      local name = page[at]
      -- What this script changed is not recorded yet.
      if (counts[name] or tonumber(count or nil) or 0) > 0 then
        names[#names + 1] = name
      elseif counts[name] == nil then
        gone[#gone + 1] = name
      end
    end
    if #gone > 0 then
      call('ZREM', known, unpack(gone))
      for at, name in ipairs(gone) do
        gone[at] = 's' .. name
      end
      call('HDEL', KEYS[1], unpack(gone))
    end
    from = '(' .. page[#page]
  end
end

-- The served consumers that may have a live head, in order, as the caller gives them.
local function consumers_of(claim)
  if live == 0 then
    return {}
  elseif not claim.served then
    return live_consumers()
  end
  local names, fields, some = claim.served.names, {}, {}
  if #names <= 1 then
    return names
  end
  for at, name in ipairs(names) do
    fields[at] = 's' .. name
  end
  for at, count in ipairs(call('HMGET', KEYS[1], unpack(fields))) do
    if (counts[names[at]] or tonumber(count or nil) or 0) > 0 then
      some[#some + 1] = names[at]
    end
  end
  return some
end

-- A member of a consumer's sets as a head, unless it is excluded or above `through`.
local function candidate(claim, consumer, place, member, through)
  local index = from_bytes('>I8', member)
  if index > through then
    return nil
  end
  local kind, cursor = string.sub(member, 9, 9), string.sub(member, 10)
  local name = kind .. consumer .. '\0' .. cursor .. '\0' .. string.sub(member, 1, 8)
  if claim.excluded and claim.excluded[kind == '0' and name or string.sub(name, 1, -10)] then
    return nil
  end
  return {
    name = name, index = index, consumer = consumer, place = place, kind = kind, cursor = cursor,
    member = member,
  }
end

local function is_head_before(a, b)
  if a.index ~= b.index then
    return a.index < b.index
  elseif a.place ~= b.place then
    return a.place < b.place
  elseif a.kind ~= b.kind then
    return string.byte(a.kind) < string.byte(b.kind)
  end
  return is_before(a.cursor, b.cursor)
end

-- Adds to `found` the consumer's first free heads, and its longest due ones. By rank, so that what is
-- passed over costs as much as what is taken.
local function find(claim, consumer, place, through, found)
  local set, wanted, due = named_key('f', consumer), claim.limit, DUE_WINDOW
  local held = call('ZCOUNT', set, '-inf', 0)
  local offset = held
  while wanted > 0 do
    local page = math.max(wanted, DUE_WINDOW)
    local members = call('ZRANGE', set, offset, offset + page - 1)
    for _, member in ipairs(members) do
      if wanted == 0 or from_bytes('>I8', member) > through then
        wanted = 0
        break
      end
      local at = candidate(claim, consumer, place, member, through)
      if at then
        wanted = wanted - 1
        found[#found + 1] = at
      end
    end
    if #members < page then
      break
    end
    offset = offset + page
  end
  offset = 0
  while due > 0 and offset < held do
    local members = call('ZRANGE', set, offset, math.min(offset + DUE_WINDOW, held) - 1, 'WITHSCORES')
    for pair = 1, #members, 2 do
      if due == 0 or tonumber(members[pair + 1]) > now - HELD then
        return
      end
      local at = candidate(claim, consumer, place, members[pair], claim.through)
      if at then
        due = due - 1
        if at.index <= through then
          found[#found + 1] = at
        end
      end
    end
    offset = offset + DUE_WINDOW
  end
end

-- Nothing is free: in how many ms the first candidate is; none when there is none.
local function busy_for(claim, names)
  local soonest
  for place, consumer in ipairs(names) do
    local set, offset, page = named_key('f', consumer), 0, 1
    local at
    repeat
      local members = call('ZRANGE', set, offset, offset + page - 1, 'WITHSCORES')
      for pair = 1, #members, 2 do
        local score = tonumber(members[pair + 1])
        if score > 0 then
          members = {}
          break
        elseif candidate(claim, consumer, place, members[pair], claim.through) then
          at = score + HELD
          break
        end
      end
      if at then
        soonest = soonest and math.min(soonest, at) or at
      end
      offset = offset + page
      page = DUE_WINDOW
    until at or #members == 0
  end
  return soonest and math.max(soonest - now, 1)
end

-- The types that a claim's log takes: the caller's declaration, else the recorded ones.
local function types_claimed(claim, consumer, name, recorded)
  for _, entry in ipairs(claim.served and claim.served.logs or {}) do
    if entry.consumer == consumer and entry.log == name then
      return entry.types
    end
  end
  return recorded
end

-- The events after a log head that its cursor takes, for a claim in runs; nothing and the index that
-- is missing when one is. Answers also the bytes that are left.
local function run_after(claim, at, bytes)
  local run = {}
  if bytes < 0 then
    return run, bytes
  end
  local record = call('HGET', session_key('g'), at.consumer .. '\0' .. at.cursor)
  local recorded = record and read_log(record).types or '*'
  local types = types_claimed(claim, at.consumer, at.cursor, recorded)
  local through = math.min(claim.through, head)
  local missing
  if types == '*' then
    bytes, missing = events_between(at.index, through, claim.run - 1, bytes, run)
    return run, bytes, missing
  end
  for _, index in ipairs(taken_after(types, at.index, through, claim.run - 1)) do
    local entry, size = event_at(index)
    if not entry then
      return run, bytes, index
    end
    run[#run + 1] = entry
    bytes = bytes - size
    if bytes < 0 then
      break
    end
  end
  return run, bytes
end

-- What the heads' rows hold.
local function read_rows(found)
  local fields, places = {}, {}
  for at, head_at in ipairs(found) do
    local key = row_key(head_at.index)
    add(fields, key, head_at.name)
    add(places, key, at)
  end
  for key, names in pairs(fields) do
    local rows = get_many(key, names)
    for at, place_at in ipairs(places[key]) do
      found[place_at].row = read_row(rows[at])
    end
  end
end

-- A head's row as the claim leaves it.
local function claim_row(claim, at, budget)
  local row = at.row
  at.lapsed = row.holder and true
  if at.lapsed then
    -- The lease lapsed: its worker is taken for dead.
    row.failures = row.failures + 1
    row.failed_at, row.failed_attempt, row.error = now, row.attempts, true
    at.error = 'lease expired'
  end
  -- Also when it is dead-lettered: this fences the lapsed attempt.
  row.attempts = row.attempts + 1
  if at.lapsed and budget and row.failures >= budget then
    row.status, row.dead_at, row.holder, row.expires = DEAD, now, false, false
  else
    if row.first == 0 and row.attempts == 1 then
      row.first = now
    end
    row.last, row.holder, row.expires = now, claim.holder, now + claim.ttl
  end
end

-- Writes the claimed heads' rows, and moves them in their sets.
local function write_claims(found)
  local rows, held, gone, dead = {}, {}, {}, {}
  for _, at in ipairs(found) do
    local key, row = row_key(at.index), at.row
    add(rows, key, at.name, write_row(row))
    if at.lapsed then
      add(rows, key, '!' .. at.name, at.error)
    end
    if row.status == DEAD then
      add(gone, at.consumer, at.member)
      add(dead, 1, at.index, dead_member(at.kind, at.consumer, at.cursor, at.index))
      count_live(at.consumer, -1)
    else
      add(held, at.consumer, row.expires - HELD, at.member)
    end
  end
  for key, list in pairs(rows) do
    each_many('HSET', key, list)
  end
  for consumer, list in pairs(held) do
    each_many('ZADD', named_key('f', consumer), list)
  end
  for consumer, members in pairs(gone) do
    each_many('ZREM', named_key('f', consumer), members)
  end
  each_many('ZADD', life_key('x'), dead[1] or {})
  for _, at in ipairs(found) do
    if at.row.status == DEAD then
      release_pins(at.name)
    end
  end
end

-- Claims heads. Answers 'claimed' with head, clear and for each its name, event, row, error (or
-- nothing) and run; 'busy' with the ms; 'settled'; or 'corrupt' with the index of a missing event.
local function claim_heads(claim)
  local names, budgets = consumers_of(claim), claim.served and claim.served.budgets or {}
  local found, through = {}, claim.through
  for place_of, consumer in ipairs(names) do
    find(claim, consumer, place_of, through, found)
    -- Not for each consumer: there may be thousands.
    if #found > 2 * claim.limit + DUE_WINDOW or place_of == #names then
      table.sort(found, is_head_before)
      for at = #found, claim.limit + 1, -1 do
        found[at] = nil
      end
      if #found == claim.limit then
        through = found[#found].index
      end
    end
  end
  if #found == 0 then
    local wait = busy_for(claim, names)
    if wait then
      return { 'busy', wait }
    end
    return { 'settled' }
  end
  read_rows(found)
  local bytes = READ_BYTES
  for at, head_at in ipairs(found) do
    if bytes < 0 then
      for rest = #found, at, -1 do
        found[rest] = nil
      end
      break
    end
    local size
    head_at.event, size = event_at(head_at.index)
    if not head_at.event then
      return { 'corrupt', head_at.index }
    end
    bytes = bytes - size
    if head_at.row.error then
      head_at.error = call('HGET', row_key(head_at.index), '!' .. head_at.name)
    end
    claim_row(claim, head_at, budgets[head_at.consumer] or claim.budget)
    if claim.run > 1 and head_at.kind == '2' and head_at.row.status == LIVE then
      local missing
      head_at.run, bytes, missing = run_after(claim, head_at, bytes)
      if missing then
        return { 'corrupt', missing }
      end
    end
  end
  write_claims(found)
  local answer = { 'claimed', head, clear }
  for _, at in ipairs(found) do
    answer[#answer + 1] = { at.name, at.event, write_row(at.row), at.error or false, at.run or {} }
  end
  return answer
end
