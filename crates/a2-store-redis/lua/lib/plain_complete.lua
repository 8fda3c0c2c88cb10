-- The completion of an event's or a lane's head that has no pins and returns one plain event or none,
-- where no log is declared: its own part.

local is_plain, own_count = false, nil
repeat
  local name, kind, place = ARGV[5], sub(ARGV[5], 1, 1), sub(ARGV[5], -8)
  local index = from_bytes('>I8', place)
  if kind == '2' or ARGV[7] ~= '' or logs > 0 or pinned > 0 or index <= clear or index > head
    or events > 1 or (events == 1 and (not is_single or values[2] or head >= 9007199254740991))
  then
    break
  end
  local key = base .. 'd' .. lifetime .. '\0' .. format('%d', floor(index / 1000))
  local next_place, tail = ZERO, nil
  if kind == '1' then
    local record = values[2 + events]
    if not record or #record ~= 24 then
      break
    end
    tail = sub(record, 9, 16)
    if tail ~= place then
      next_place = values[2 + events + lanes + consumers]
      if not next_place then
        break
      end
    end
  end
  local row = call('HGET', key, name)
  if not row then
    break
  end
  local status, flags, attempts = from_bytes('>BBI8', row)
  own_count = values[1 + events + lanes + own]
  if status ~= 1 or flags % 4 ~= 3 or attempts ~= tonumber(ARGV[6]) or not own_count then
    break
  end
  -- All is checked.
  is_plain = true
  local consumer = sub(args[consumers_at + own], 2)
  local set = base .. 'f' .. lifetime .. '\0' .. consumer
  call('HSET', key, name, pack('>BBI8i8i8i8I8i8I8i8', 3, 0, attempts, head, events, 0, 0, 0, 0, 0))
  if flags >= 4 then
    call('HDEL', key, '!' .. name)
  end
  call('ZREM', set, place .. sub(name, 1, 1) .. sub(name, #consumer + 3, -10))
  if kind == '0' then
    call('ZREM', base .. 'o' .. lifetime, consumer .. '\0' .. '3' .. place)
  else
    local record = next_place .. tail .. place
    values[2 + events] = record
    changed[1], changed[2], put = args[lanes_at + 1], record, 2
  end
  if next_place ~= ZERO then
    call('HDEL', KEYS[1], args[tails_at])
    call('ZADD', set, from_bytes('>I8', next_place), next_place .. kind .. sub(name, #consumer + 3, -10))
  else
    own_count = own_count - 1
    values[1 + events + lanes + own] = own_count
    live = live - 1
    changed[put + 1], changed[put + 2] = args[consumers_at + own], format('%d', own_count)
    put = put + 2
  end
until true
