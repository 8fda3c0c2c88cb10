-- What the plain paths share: they do the same as what follows them, in fewer calls and without its
-- functions, whose making costs the server more than the work itself. Whatever is not plain they leave
-- alone, with nothing written.

-- What is served, from an argument on: the names (nothing: everything), the argument after it, and
-- whether a log is declared.
local function plain_served(at)
  local count = tonumber(ARGV[at])
  at = at + 1
  if count < 0 then
    return nil, at, false
  end
  local names, declares = {}, false
  for entry = 1, count do
    names[entry] = ARGV[at]
    if ARGV[at + 2] == '1' then
      at, declares = at + 6, true
    else
      at = at + 3
    end
  end
  return names, at, declares
end

-- Whether one of them has a live head, of so many that are live.
local function plain_pending(names, live, life)
  if live > 0 and names and #names > 0 then
    for _, count in ipairs(call('HMGET', base .. 's' .. life, unpack(names))) do
      if count and tonumber(count) > 0 then
        return 1
      end
    end
    return 0
  end
  return not names and live > 0 and 1 or 0
end
