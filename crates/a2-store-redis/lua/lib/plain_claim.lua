-- A claim for one consumer that excludes nothing and takes no runs, where no hold or lease is over: from
-- an argument on. Nothing when it is not that plain.

local function plain_claim(at)
  local after = ARGV[at + 9] == '1' and at + 13 or at + 10
  if ARGV[at + 4] ~= '1' or ARGV[at + 6] ~= '1' or ARGV[after] ~= '0' then
    return nil
  end
  local consumer, session = ARGV[at + 7], string.sub(KEYS[1], #base + 2)
  local state = call('HMGET', KEYS[1], 'head', 'clear', 'live')
  if (tonumber(state[3]) or 0) == 0 then
    return { 'settled' }
  end
  local clear, life = tonumber(state[2]), session .. '\0' .. state[2]
  local free, held = base .. 'f' .. life .. '\0' .. consumer, base .. 'b' .. life .. '\0' .. consumer
  local first_held = call('ZRANGE', held, 0, 0, 'WITHSCORES')
  local soonest = tonumber(first_held[2])
  if soonest and soonest <= now then
    return nil
  end
  local members = call('ZRANGEBYSCORE', free, '-inf', ARGV[at + 3], 'LIMIT', 0, ARGV[at + 2])
  if #members == 0 then
    if not soonest then
      return { 'settled' }
    elseif ARGV[at + 3] ~= '9007199254740991' then
      return nil
    end
    return { 'busy', math.max(soonest - now, 1) }
  end
  if #members > 1000 then
    return nil
  end
  local holder, expires = ARGV[at], now + tonumber(ARGV[at + 1])
  local answer, rows, scores, bytes = { 'claimed', tonumber(state[1]), clear }, {}, {}, 0
  for place, member in ipairs(members) do
    local index = from_bytes('>I8', member)
    local name = string.sub(member, 9, 9) .. consumer .. '\0' .. string.sub(member, 10) .. '\0'
      .. string.sub(member, 1, 8)
    local chunk = floor(index / 1000)
    local key = life .. '\0' .. format('%d', chunk)
    local row, attempts, first, failures = call('HGET', base .. 'd' .. key, name), 1, now, 0
    local failed_at, failed_attempt = 0, 0
    if row then
      local status, flags, _, before
      status, flags, before, first, _, _, failures, failed_at, failed_attempt =
        from_bytes('>BBI8i8i8i8I8i8I8', row)
      if status ~= 1 or flags ~= 0 then
        return nil
      end
      attempts = before + 1
    end
    local entry = call('LINDEX', base .. 'l' .. key, index - math.max(chunk * 1000, clear, 1))
    if not entry or #entry < 28 or from_bytes('>I8', entry) ~= index then
      return nil
    end
    local size = from_bytes('>I4', entry, 25)
    bytes = bytes + size
    if size > 32768 or bytes > 16777216 then
      return nil
    end
    row = pack('>BBI8i8i8i8I8i8I8i8', 1, 3, attempts, first, now, expires, failures, failed_at,
      failed_attempt, 0) .. holder
    rows[place] = { base .. 'd' .. key, name, row }
    scores[2 * place - 1], scores[2 * place] = expires, member
    answer[place + 3] = { name, entry, row, false, {} }
  end
  for _, row in ipairs(rows) do
    call('HSET', row[1], row[2], row[3])
  end
  call('ZREM', free, unpack(members))
  call('ZADD', held, unpack(scores))
  return answer
end
