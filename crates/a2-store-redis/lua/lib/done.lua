-- Finishing heads: the cursor moves on.

-- Takes a live or dead head out of the sets it is in.
local function take_out(row, kind, consumer, cursor, index)
  if row.status == DEAD then
    call('ZREM', life_key('x'), dead_member(kind, consumer, cursor, index))
    return
  end
  call('ZREM', named_key('f', consumer), member_of(kind, cursor, index))
  count_live(consumer, -1)
end

-- Finishes a head, by an attempt or (none) by a skip, with the batch as what it returns. Answers false,
-- with nothing written, when its lane is broken.
local function finish_head(name, row, log, attempt, through)
  local kind, consumer, cursor, index = split(name)
  local after, key = head, row_key(index)
  local place, next_place, tail = pack('>I8', index), ZERO, nil
  if kind == '1' then
    if not values[2 + events] then
      return false
    end
    tail = sub(values[2 + events], 9, 16)
    if tail ~= place then
      next_place = values[2 + events + lanes + consumers]
      if not next_place then
        return false
      end
    end
  end
  if kind == '2' then
    call('HDEL', key, name, '!' .. name)
  else
    call('HSET', key, name, done_row(attempt, after, events))
  end
  take_out(row, kind, consumer, cursor, index)
  release_pins(name)
  if kind == '2' then
    log.types = types_declared(consumer, cursor, log.types)
    store_all({ consumer = consumer, log = cursor })
    log.done, log.attempt, log.after, log.count = attempt and index or 0, attempt or 0, after, events
    advance(log, consumer, cursor, through)
    return true
  end
  if kind == '0' then
    call('ZREM', life_key('o'), consumer .. '\0' .. '3' .. place)
    if row.error then
      call('HDEL', key, '!' .. name)
    end
  else
    if row.error then
      call('HDEL', key, '!' .. name)
    end
    values[2 + events] = next_place .. tail .. place
    changed[put + 1], changed[put + 2] = 'n' .. consumer .. '\0' .. cursor, values[2 + events]
    put = put + 2
    if next_place ~= ZERO then
      call('HDEL', KEYS[1], args[tails_at])
      add_free(consumer, kind, cursor, from_bytes('>I8', next_place))
    end
  end
  store_all()
  return true
end
