-- What a plain path changed is recorded: as `finish`. Leaves whether a served consumer has a live head.

local pending
if is_plain and (events == 0 or entry) then
  if head_before == 0 and head > 0 then
    call('ZADD', base .. 'S', 0, sub(session, 2))
  end
  if live > 0 and listed == 0 then
    call('ZADD', base .. 'P', 0, sub(session, 2))
    listed = 1
  end
  if put > 0 then
    values[1] = pack(STATE, head, clear, live, pinned, listed)
    changed[put + 1], changed[put + 2] = 'h', values[1]
    call('HSET', KEYS[1], unpack(changed, 1, put + 2))
    put = 0
  end
  pending = 0
  if served == 4294967295 then
    pending = live > 0 and 1 or 0
  elseif live > 0 then
    for at = 2 + events + lanes, 1 + events + lanes + served do
      if values[at] and tonumber(values[at]) > 0 then
        pending = 1
        break
      end
    end
  end
end
