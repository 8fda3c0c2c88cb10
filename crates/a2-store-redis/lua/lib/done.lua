-- Finishing heads: the cursor moves on.

-- Takes a live or dead head out of the sets it is in.
local function take_out(row, kind, consumer, cursor, index)
  if row.status == DEAD then
    call('ZREM', life_key('x'), dead_member(kind, consumer, cursor, index))
    return
  end
  call('ZREM', named_key(row.expires and 'b' or 'f', consumer), member_of(kind, cursor, index))
  count_live(consumer, -1)
end

-- The lane's record moves from this head to the next one; nothing when what is stored is broken.
local function lane_after(key, name, field, index)
  local record = call('HGET', life_key('n'), field)
  if not record then
    return nil
  end
  local _, tail = from_bytes('>I8I8I8', record)
  if tail <= index then
    return 0, pack('>I8I8I8', 0, tail, index)
  end
  local next_index = tonumber(call('HGET', key, '>' .. name) or nil)
  if next_index then
    return next_index, pack('>I8I8I8', next_index, tail, index)
  end
end

-- Finishes a head, by an attempt or (none) by a skip; `events` are what it returns. Answers false, with
-- nothing written, when its lane is broken.
local function finish_head(name, row, log, attempt, through, events, served)
  local kind, consumer, cursor, index = split(name)
  local after, count = head, #events
  local cause = attempt and pack('>I8', attempt) .. name
  local key, field = row_key(index), consumer .. '\0' .. cursor
  local next_index, record
  if kind == '1' then
    next_index, record = lane_after(key, name, field, index)
    if not next_index then
      return false
    end
  end
  if kind == '2' then
    call('HDEL', key, name, '!' .. name)
  else
    call('HSET', key, name, done_row(attempt, after, count))
  end
  take_out(row, kind, consumer, cursor, index)
  release_pins(name)
  if kind == '2' then
    log.types = types_of(served, consumer, cursor, log.types)
    store(events, cause, served, { consumer = consumer, log = cursor })
    log.done, log.attempt, log.after, log.count = attempt and index or 0, attempt or 0, after, count
    advance(log, consumer, cursor, through)
    return true
  end
  if kind == '0' then
    call('ZREM', life_key('o'), consumer .. '\0' .. '3' .. pack('>I8', index))
    if row.error then
      call('HDEL', key, '!' .. name)
    end
  else
    if next_index > 0 or row.error then
      call('HDEL', key, '>' .. name, '!' .. name)
    end
    call('HSET', life_key('n'), field, record)
    if next_index > 0 then
      add_free(consumer, kind, cursor, next_index)
    end
  end
  store(events, cause, served)
  return true
end
