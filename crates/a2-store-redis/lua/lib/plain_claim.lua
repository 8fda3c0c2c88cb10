-- A claim for one consumer that excludes nothing and takes no runs, where no hold or lease is over: from
-- the argument after `claim_at` on. Leaves its answer; nothing, with nothing written, when it is not that
-- plain.

local claimed
repeat
  local at = claim_at
  if not at or ARGV[at + 5] ~= '1' or ARGV[at + 7] ~= '1'
    or ARGV[at + 11 + 3 * ARGV[at + 10]] ~= '0'
  then
    break
  end
  if live == 0 then
    claimed = { 'settled' }
    break
  end
  local consumer, limit, through = ARGV[at + 8], ARGV[at + 3], ARGV[at + 4]
  local set = base .. 'f' .. lifetime .. '\0' .. consumer
  -- Held heads stand by their expiry less 2^53, free ones by their index, after them.
  local members = call('ZRANGE', set, 0, 0, 'WITHSCORES')
  local score = tonumber(members[2] or nil)
  if not score then
    claimed = { 'settled' }
    break
  elseif score > 0 and limit == '1' and score <= tonumber(through) then
    members[2] = nil
  elseif score <= now - 9007199254740992 then
    break
  else
    members = call('ZRANGEBYSCORE', set, 1, through, 'LIMIT', 0, limit)
    if #members == 0 then
      if score > 0 then
        claimed = { 'settled' }
      elseif through == '9007199254740991' then
        claimed = { 'busy', math.max(score + 9007199254740992 - now, 1) }
      end
      break
    end
  end
  local expires = now + tonumber(ARGV[at + 2])
  local answer, keys, rows, scores, bytes = { 'claimed', head, clear }, {}, {}, {}, 0
  local score_after = format('%d', expires - 9007199254740992)
  for place = 1, #members do
    local member = members[place]
    local index = from_bytes('>I8', member)
    local name = sub(member, 9, 9) .. consumer .. '\0' .. sub(member, 10) .. '\0' .. sub(member, 1, 8)
    local from = floor(index / 1000)
    local key = lifetime .. '\0' .. format('%d', from)
    from = from * 1000
    local row, attempts, first, failures = call('HGET', base .. 'd' .. key, name), 1, now, 0
    local failed_at, failed_attempt = 0, 0
    if row then
      local status, flags, _, before
      status, flags, before, first, _, _, failures, failed_at, failed_attempt =
        from_bytes('>BBI8i8i8i8I8i8I8', row)
      if status ~= 1 or flags ~= 0 then
        answer = nil
        break
      end
      attempts = before + 1
    end
    if from <= clear then
      from = clear > 0 and clear or 1
    end
    local event = call('LINDEX', base .. 'l' .. key, index - from)
    if not event or #event < 28 or from_bytes('>I8', event) ~= index then
      answer = nil
      break
    end
    local size = from_bytes('>I4', event, 25)
    bytes = bytes + size
    if size > 32768 or bytes > 16777216 then
      answer = nil
      break
    end
    row = pack('>BBI8i8i8i8I8i8I8i8', 1, 3, attempts, first, now, expires, failures, failed_at,
      failed_attempt, 0) .. ARGV[at + 1]
    keys[place], rows[place * 2 - 1], rows[place * 2] = base .. 'd' .. key, name, row
    scores[2 * place - 1], scores[2 * place] = score_after, member
    answer[place + 3] = { name, event, row, false, {} }
  end
  if answer then
    local from = 1
    for place = 1, #members do
      if keys[place] ~= keys[place + 1] then
        call('HSET', keys[place], unpack(rows, from * 2 - 1, place * 2))
        from = place + 1
      end
    end
    call('ZADD', set, unpack(scores))
  end
  claimed = answer
until true
