-- Log cursors: when they are made, and when they move.

-- A head becomes claimable.
local function add_free(consumer, kind, name, index)
  call('ZADD', named_key('f', consumer), index, member_of(kind, name, index))
  count_live(consumer, 1)
end

-- Makes the cursor that an entry declares, or moves it when it is idle, or records the types; writes
-- only what changes. `before` is the log's head before the batch that touches it.
local function touch(entry, before)
  local field = entry.consumer .. '\0' .. entry.log
  local bytes = call('HGET', session_key('g'), field)
  local log = read_log(bytes)
  if not log then
    log = {
      position = entry.backfill and clear or before, head = 0, done = 0, attempt = 0, after = 0,
      count = 0,
    }
    call('ZADD', session_key('q'), 0, entry.consumer .. '\0' .. '2' .. entry.log)
  end
  log.types = entry.types
  if log.head == 0 then
    local next_index = taken_after(log.types, log.position, head, 1)[1]
    if next_index then
      log.head = next_index
      add_free(entry.consumer, '2', entry.log, next_index)
    end
  end
  local changed = write_log(log)
  if changed ~= bytes then
    call('HSET', session_key('g'), field, changed)
  end
  return log
end

-- Moves a cursor whose head is done past `through`, to the first event it takes after that.
local function advance(log, consumer, name, through)
  log.position = through
  log.head = taken_after(log.types, through, head, 1)[1] or 0
  call('HSET', session_key('g'), consumer .. '\0' .. name, write_log(log))
  if log.head > 0 then
    add_free(consumer, '2', name, log.head)
  end
end
