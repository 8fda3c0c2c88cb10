-- Fails an attempt: head, attempt, error, failure budget (empty: none), how long it is held in ms, then
-- 1 and a claim, or 0. Answers the outcome and the claim's answer or nothing. Outcomes: 'failed' and
-- 'dead' (failures), 'superseded', 'not_found'.

local name, attempt, text = take(), tonumber(take()), take()
local budget, hold = tonumber(take()), tonumber(take())
local claim = take() == '1' and take_claim()

local function present(row)
  return { row.status == DEAD and 'dead' or 'failed', row.failures }
end

local function fail()
  local what, row = place(name)
  if what == 'beyond' then
    return { 'not_found' }
  end
  if what ~= 'row' or row.attempts ~= attempt then
    return { 'superseded' }
  end
  if not row.holder then
    if row.failed_attempt == attempt then
      return present(row)
    end
    return { 'superseded' }
  end
  local kind, consumer, cursor, index = split(name)
  local set, member = named_key('f', consumer), member_of(kind, cursor, index)
  row.failures = row.failures + 1
  row.failed_at, row.failed_attempt, row.error, row.holder = now, attempt, true, false
  row.expires = false
  if budget and row.failures >= budget then
    row.status, row.dead_at = DEAD, now
  elseif hold > 0 then
    row.expires = now + hold
  end
  call('HSET', row_key(index), name, write_row(row), '!' .. name, text)
  if row.expires then
    call('ZADD', set, row.expires - HELD, member)
  elseif row.status == DEAD then
    call('ZREM', set, member)
    call('ZADD', life_key('x'), index, dead_member(kind, consumer, cursor, index))
    count_live(consumer, -1)
    release_pins(name)
  else
    call('ZADD', set, index, member)
  end
  return present(row)
end

local outcome = fail()
local claimed = false
if claim and outcome[1] ~= 'not_found' then
  claimed = claim_heads(claim)
end
finish()
return { outcome, claimed }
