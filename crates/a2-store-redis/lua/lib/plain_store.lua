-- Stores the one event of a plain batch and tells of it: as `store` and `publish`, without their tables
-- and functions, which cost the server as much as the rest. Leaves the entry.

local entry
if is_plain and is_single then
  local record = lane and values[2 + lane]
  head = head + 1
  local place = pack('>I8', head)
  entry = place .. pack('>i8', now) .. args[tails_at + 1]
  call('RPUSH', base .. 'l' .. lifetime .. '\0' .. format('%d', floor(head / 1000)), entry)
  if call('APPEND', base .. 'y' .. lifetime .. '\0' .. args[types_at + 1], place) == 8 then
    call('SADD', base .. 'r' .. lifetime, 'y' .. args[types_at + 1])
  end
  changed[put + 1], changed[put + 2], put = args[ids_at + 1], place, put + 2
  -- The consumer that gets a free head, and the head's place in its set.
  local consumer, member
  if lane then
    local name = sub(args[lanes_at + lane], 2)
    local first, tail, position = place, nil, nil
    if record then
      first, tail, position = sub(record, 1, 8), sub(record, 9, 16), sub(record, 17)
    end
    if not record or first == ZERO then
      consumer = from_bytes('>I2', args[lane_args + lane])
      local of, cursor = args[consumers_at + consumer], nil
      cursor = sub(name, #of + 1)
      first, member = place, place .. '1' .. cursor
      if not record then
        position = pack('>I8', clear)
        call('ZADD', base .. 'o' .. lifetime, 0, sub(of, 2) .. '\0' .. '1' .. cursor)
      end
    else
      changed[put + 1], changed[put + 2], put = '>1' .. name .. '\0' .. tail, place, put + 2
    end
    changed[put + 1], changed[put + 2] = args[lanes_at + lane], first .. place .. position
    put = put + 2
  elseif singles == 1 then
    consumer, member = from_bytes('>I2', args[single_args + 1]), place .. '0'
    call('ZADD', base .. 'o' .. lifetime, 0, sub(args[consumers_at + consumer], 2) .. '\0' .. '3' .. place)
  end
  if consumer then
    local field, known = args[consumers_at + consumer], 2 + lanes + consumer
    call('ZADD', base .. 'f' .. lifetime .. '\0' .. sub(field, 2), head, member)
    if not values[known] then
      call('ZADD', base .. 'h' .. lifetime, 0, sub(field, 2))
    end
    local count = (values[known] or 0) + 1
    values[known], live = count, live + 1
    changed[put + 1], changed[put + 2], put = field, format('%d', count), put + 2
  end
  if ARGV[2] ~= '' then
    local told = 'a' .. ARGV[3] .. pack('>I8I8I4', clear, head, 1)
    if #entry <= 8192 then
      told = told .. sub(session, 2) .. '\0' .. pack('>I4', #entry) .. entry
    else
      told = told .. sub(session, 2) .. '\0'
    end
    redis.pcall(ARGV[2], base .. 'w', told)
  end
end
