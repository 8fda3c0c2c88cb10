-- One event, as most appends are, that no log cursor is declared for. The id's own field tells whether it
-- is new.

do
  local names, at, declares = plain_served(7)
  local is_plain = ARGV[5] == '' and ARGV[6] == '' and not declares
  if is_plain and ARGV[at] == '1' and ARGV[at + 3] == '' and #ARGV[at + 4] <= 32768 then
    local id, event_type, payload = ARGV[at + 1], ARGV[at + 2], ARGV[at + 4]
    local session = string.sub(KEYS[1], #base + 2)
    local state = call('HMGET', KEYS[1], 'head', 'clear', 'live', 'pinned')
    local head, clear = tonumber(state[1]) or 0, state[2] or '0'
    local life = session .. '\0' .. clear
    local index = head + 1
    local targets, records, is_whole = tonumber(ARGV[at + 5]), {}, head < 9007199254740991
    for target = 1, targets do
      if string.byte(ARGV[at + 5 + target]) == 49 then
        records[target] = call('HGET', base .. 'n' .. life, string.sub(ARGV[at + 5 + target], 2))
        is_whole = is_whole and (not records[target] or #records[target] == 24)
      end
    end
    if is_whole and call('HSETNX', base .. 'i' .. life, id, index) == 1 then
      local chunk = '\0' .. format('%d', floor(index / 1000))
      local place = pack('>I8', index)
      local entry = pack('>I8i8I2I2I4I4', index, now, #id, #event_type, 0, #payload)
        .. id .. event_type .. payload
      call('RPUSH', base .. 'l' .. life .. chunk, entry)
      if call('APPEND', base .. 'y' .. life .. '\0' .. event_type, place) == 8 then
        call('SADD', base .. 'r' .. life, 'y' .. event_type)
      end
      local live = tonumber(state[3]) or 0
      local was_live = live > 0
      for number = 1, targets do
        local target, record = ARGV[at + 5 + number], records[number]
        local stop = string.find(target, '\0', 2, true)
        local consumer, lane = string.sub(target, 2, stop - 1), string.sub(target, stop + 1)
        local kind, is_free = string.sub(target, 1, 1), true
        if kind == '0' then
          call('ZADD', base .. 'o' .. life, 0, consumer .. '\0' .. '3' .. place)
        else
          local field = string.sub(target, 2)
          local first, tail, position = index, 0, tonumber(clear)
          if record then
            first, tail, position = from_bytes('>I8I8I8', record)
            is_free = first == 0
            if is_free then
              first = index
            else
              call('HSET', base .. 'd' .. life .. '\0' .. format('%d', floor(tail / 1000)),
                '>' .. target .. '\0' .. pack('>I8', tail), index)
            end
          else
            call('ZADD', base .. 'o' .. life, 0, consumer .. '\0' .. '1' .. lane)
          end
          call('HSET', base .. 'n' .. life, field, pack('>I8I8I8', first, index, position))
        end
        if is_free then
          call('ZADD', base .. 'f' .. life .. '\0' .. consumer, index, place .. kind .. lane)
          call('HINCRBY', base .. 's' .. life, consumer, 1)
          live = live + 1
        end
      end
      if head > 0 then
        call('HSET', KEYS[1], 'head', index, 'live', live)
      else
        call('HSET', KEYS[1], 'head', index, 'clear', clear, 'live', live, 'pinned', '0')
      end
      if head == 0 then
        call('ZADD', KEYS[2], 0, string.sub(session, 2))
      end
      if live > 0 and not was_live then
        call('ZADD', KEYS[3], 0, string.sub(session, 2))
      end
      if ARGV[2] ~= '' then
        local told = 'a' .. ARGV[4] .. pack('>I8I8I4', tonumber(clear), index, 1)
          .. string.sub(session, 2) .. '\0'
        if #entry <= 8192 then
          told = told .. pack('>I4', #entry) .. entry
        end
        redis.pcall(ARGV[2], ARGV[3], told)
      end
      return { 'appended', index, tonumber(clear), now, plain_pending(names, live, life) }
    end
  end
end
