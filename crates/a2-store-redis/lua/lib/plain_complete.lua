-- The completion of an event's or a lane's head that returns nothing and has no pins, and the plain
-- claim after it.

-- What came of the completion, when it was done here.
local outcome
-- Where the claim begins, when there is one.
local claim_at

do
  local names, at = plain_served(8)
  local name, attempt = ARGV[5], tonumber(ARGV[6])
  local kind = string.sub(name, 1, 1)
  if ARGV[at] == '0' and ARGV[7] == '' and kind ~= '2' then
    local session, index = string.sub(KEYS[1], #base + 2), from_bytes('>I8', name, #name - 7)
    local state = call('HMGET', KEYS[1], 'head', 'clear', 'live', 'pinned')
    local head, clear = tonumber(state[1]) or 0, tonumber(state[2]) or 0
    local life = session .. '\0' .. (state[2] or '0')
    local key = base .. 'd' .. life .. '\0' .. format('%d', floor(index / 1000))
    local row = index > clear and index <= head and state[4] == '0' and call('HGET', key, name)
    local status, flags, attempts
    if row then
      status, flags, attempts = from_bytes('>BBI8', row)
    end
    local stop = string.find(name, '\0', 2, true)
    local consumer, cursor = string.sub(name, 2, stop - 1), string.sub(name, stop + 1, -10)
    local field, next_index, tail = string.sub(name, 2, -10), 0, 0
    local is_plain = status == 1 and flags % 4 == 3 and attempts == attempt
    if is_plain and kind == '1' then
      local record = call('HGET', base .. 'n' .. life, field)
      is_plain = record and #record == 24
      if is_plain then
        local _
        _, tail = from_bytes('>I8I8', record)
      end
      if tail > index then
        next_index = tonumber(call('HGET', key, '>' .. name) or nil)
        is_plain = next_index and true
      end
    end
    if is_plain then
      local place, live = string.sub(name, -8), tonumber(state[3])
      call('HSET', key, name, pack('>BBI8i8i8i8I8i8I8i8', 3, 0, attempt, head, 0, 0, 0, 0, 0, 0))
      if flags >= 4 or next_index > 0 then
        call('HDEL', key, '!' .. name, '>' .. name)
      end
      call('ZREM', base .. 'b' .. life .. '\0' .. consumer, place .. kind .. cursor)
      if kind == '0' then
        call('ZREM', base .. 'o' .. life, consumer .. '\0' .. '3' .. place)
      else
        call('HSET', base .. 'n' .. life, field, pack('>I8I8I8', next_index, tail, index))
      end
      if next_index > 0 then
        call('ZADD', base .. 'f' .. life .. '\0' .. consumer, next_index,
          pack('>I8', next_index) .. kind .. cursor)
      else
        live = live - 1
        call('HINCRBY', base .. 's' .. life, consumer, -1)
        call('HSET', KEYS[1], 'live', live)
        if live == 0 and call('EXISTS', base .. 't' .. session, base .. 't' .. life) == 0 then
          call('ZREM', KEYS[3], string.sub(session, 2))
        end
      end
      outcome = { 'completed', head, clear, now, plain_pending(names, live, life) }
      if ARGV[at + 1] ~= '1' then
        return { outcome, false }
      end
      claim_at = at + 2
      local claimed = plain_claim(claim_at)
      if claimed then
        return { outcome, claimed }
      end
    end
  end
end
