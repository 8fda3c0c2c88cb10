-- Deletes some of what earlier lifetimes left. Answers 'reclaimed', the number of rows, and whether
-- nothing is left, 1 or 0.
--
-- A key goes whole: the server frees it beside its work. It counts as its rows, so that a call deletes a
-- few keys, or one large one.

local rows, looks, deleted = 256, 64, 0
local SIZES = { list = 'LLEN', hash = 'HLEN', zset = 'ZCARD', set = 'SCARD' }

-- The lifetime that is reclaimed: which, its last index, and how many of its chunks' keys are gone.
local life, last, gone

local function old_key(letter, name)
  local key = session_key(letter) .. '\0' .. format('%d', life)
  return name and key .. '\0' .. name or key
end

local function count(size)
  rows, deleted = rows - size, deleted + size
end

local function drop(key)
  looks = looks - 1
  local kind = call('TYPE', key).ok
  if kind ~= 'none' then
    count(SIZES[kind] and call(SIZES[kind], key) or 1)
    call('UNLINK', key)
  end
end

local function may_go_on()
  return rows > 0 and looks > 0
end

-- Deletes what a registry names, until it names nothing. `some` answers names, `forget` takes one out.
local function drain(some, forget)
  while may_go_on() do
    local names = some()
    if #names == 0 then
      return true
    end
    for _, name in ipairs(names) do
      if not may_go_on() then
        return false
      end
      forget(name)
    end
  end
  return false
end

local function drop_chunks()
  local first = floor(math.max(life, 1) / CHUNK)
  local keys = (floor(last / CHUNK) - first + 1) * 2
  while gone < keys do
    if not may_go_on() then
      return false
    end
    drop(old_key(gone % 2 == 0 and 'l' or 'd', format('%d', first + floor(gone / 2))))
    gone = gone + 1
  end
  return true
end

local function drop_payloads()
  return drain(function()
    return call('LRANGE', old_key('w'), 0, 15)
  end, function(index)
    drop(old_key('e', index))
    call('LPOP', old_key('w'))
  end)
end

local function drop_timers()
  return drain(function()
    return call('ZRANGE', old_key('t'), 0, 63)
  end, function(key)
    local member = string.sub(session, 2) .. '\0b' .. pack('>I8', life) .. key
    call('ZREM', base .. 'T', member)
    call('ZREM', old_key('t'), key)
    count(1)
  end)
end

local function drop_named()
  return drain(function()
    return call('SRANDMEMBER', old_key('r'), 16)
  end, function(entry)
    local name = string.sub(entry, 2)
    if string.sub(entry, 1, 1) == 'y' then
      drop(old_key('y', name))
    else
      drop(old_key('z', name))
      drop(old_key('Z', name))
    end
    call('SREM', old_key('r'), entry)
  end)
end

local function drop_consumers()
  return drain(function()
    return call('ZRANGE', old_key('h'), 0, 15)
  end, function(consumer)
    drop(old_key('f', consumer))
    call('ZREM', old_key('h'), consumer)
  end)
end

local function drop_rest()
  for letter in string.gmatch('mxokjcv', '.') do
    if not may_go_on() then
      return false
    end
    drop(old_key(letter))
  end
  return true
end

local old, done = session_key('u'), 0
while true do
  local entry = call('LINDEX', old, 0)
  if not entry then
    done = 1
    break
  end
  life, last, gone = from_bytes('>I8I8I8', entry)
  if drop_chunks() and drop_payloads() and drop_timers() and drop_named() and drop_consumers()
    and drop_rest()
  then
    call('LPOP', old)
  else
    call('LSET', old, 0, pack('>I8I8I8', life, last, gone))
    break
  end
end
return { 'reclaimed', deleted, done }
