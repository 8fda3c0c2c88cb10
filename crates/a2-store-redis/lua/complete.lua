-- Completes an attempt: what it returns, with the head, the attempt and through (empty: none), then 1 and
-- a claim, or 0. Answers the outcome and the claim's answer or nothing. Outcomes: 'completed' (head,
-- clear, at, pending), 'replayed' (…, entries), 'superseded', 'not_found', 'beyond' (head: of through),
-- 'partial_duplicate' (ids), 'full', 'corrupt' (index).

local name, attempt, through = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7])
argument = batch_end
local claim = take() == '1' and take_claim()

-- The events that a completion returned which was done already, when they are these.
local function returned_before(done)
  local entries = {}
  if done.count ~= events then
    return nil
  end
  for at = 1, events do
    local entry = event_at(done.after + at)
    if not entry then
      return nil, done.after + at
    end
    local id = sub(entry, HEADER_BYTES + 1, HEADER_BYTES + from_bytes('>I2', entry, 17))
    if id ~= sub(args[ids_at + at], 2) then
      return nil
    end
    entries[at] = entry
  end
  return entries
end

local function complete()
  local what, row, log = place(name)
  if what == 'beyond' then
    return { 'not_found' }
  end
  if what == 'done' and row.attempt == attempt and attempt > 0 then
    local entries, missing = returned_before(row)
    if missing then
      return { 'corrupt', missing }
    elseif not entries then
      return { 'partial_duplicate', owned_ids() }
    end
    return { 'replayed', head, clear, now, has_pending(), entries }
  end
  if what ~= 'row' or row.status ~= LIVE or row.attempts ~= attempt or not row.holder then
    return { 'superseded' }
  end
  if through and through > head then
    return { 'beyond', head }
  end
  local _, count = owners()
  if count > 0 then
    return { 'partial_duplicate', owned_ids() }
  end
  if head + events > 9007199254740991 then
    return { 'full' }
  end
  local _, _, _, index = split(name)
  if not finish_head(name, row, log, attempt, through or index) then
    return { 'corrupt', index }
  end
  return { 'completed', head, clear, now, has_pending() }
end

-- The plain path may have completed it and left the claim.
outcome = outcome or complete()
local status, claimed = outcome[1], false
if claim and (status == 'completed' or status == 'replayed' or status == 'superseded') then
  claimed = claim_heads(claim)
end
finish()
return { outcome, claimed }
