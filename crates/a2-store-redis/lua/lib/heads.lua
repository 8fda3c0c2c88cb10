-- Heads and their dispatch state.
--
-- A head is named by one string: its kind (0 event, 1 lane, 2 log), the consumer, U+0000, the lane's
-- or log's name, U+0000, and its index in 8 bytes. Its row is the field of that name in the chunk of
-- its index; a head that was never claimed has none. '!' and the name: the last error. Live heads stand in a sorted set of their consumer as their index,
-- kind and name: held ones by their expiry less HELD and so first, free ones by their index.

local HELD = 9007199254740992

local ROW = '>BBI8i8i8i8I8i8I8i8'
local LIVE, DEAD, DONE, SKIPPED = 1, 2, 3, 4

local function split(name)
  local stop = string.find(name, '\0', 2, true)
  return string.sub(name, 1, 1), string.sub(name, 2, stop - 1), string.sub(name, stop + 1, -10),
    from_bytes('>I8', name, #name - 7)
end

local function head_name(kind, consumer, name, index)
  return kind .. consumer .. '\0' .. name .. '\0' .. pack('>I8', index)
end

-- Its place in its consumer's sets.
local function member_of(kind, name, index)
  return pack('>I8', index) .. kind .. name
end

-- Its place among the dead letters, which are ordered by index.
local function dead_member(kind, consumer, name, index)
  return consumer .. '\0' .. kind .. name .. '\0' .. pack('>I8', index)
end

local function new_row()
  return {
    status = LIVE, expires = false, attempts = 0, first = 0, last = 0, failures = 0,
    failed_at = 0, failed_attempt = 0, dead_at = 0, error = false, holder = false,
  }
end

-- Flags: 1 there is a holder, 2 there is an expiry, 4 there is an error.
local function read_row(bytes)
  if not bytes then
    return new_row()
  end
  local status, flags, attempts, first, last, expires, failures, failed_at, failed_attempt, dead_at, stop =
    from_bytes(ROW, bytes)
  return {
    status = status, attempts = attempts, first = first, last = last,
    expires = floor(flags / 2) % 2 == 1 and expires, failures = failures, failed_at = failed_at,
    failed_attempt = failed_attempt, dead_at = dead_at, error = flags >= 4,
    holder = flags % 2 == 1 and string.sub(bytes, stop),
  }
end

local function write_row(row)
  local flags = (row.holder and 1 or 0) + (row.expires and 2 or 0) + (row.error and 4 or 0)
  return pack(ROW, row.status, flags, row.attempts, row.first, row.last, row.expires or 0,
    row.failures, row.failed_at, row.failed_attempt, row.dead_at) .. (row.holder or '')
end

-- How a head was finished: by which attempt (none: skipped), and after which index what it returned.
local function done_row(attempt, after, count)
  return pack(ROW, attempt and DONE or SKIPPED, 0, attempt or 0, after, count, 0, 0, 0, 0, 0)
end

local function row_key(index)
  return chunk_key('d', floor(index / CHUNK))
end

-- A log cursor: position, head (0: idle), its last completion (index, attempt, after which index it
-- returned how many events), and the types it takes.
local LOG = '>I8I8I8I8I8I8'

local function read_log(bytes)
  if not bytes then
    return nil
  end
  local position, at, done, attempt, after, count, stop = from_bytes(LOG, bytes)
  local log = {
    position = math.max(position, clear), head = at, done = done, attempt = attempt,
    after = after, count = count, types = string.sub(bytes, stop),
  }
  -- What lies below the marker is gone.
  if at <= clear then
    log.head = 0
  end
  if done <= clear then
    log.done = 0
  end
  return log
end

local function write_log(log)
  return pack(LOG, log.position, log.head, log.done, log.attempt, log.after, log.count) .. log.types
end

-- Where a head stands: 'cleared', 'beyond', 'done' (with its row or log), 'passed', 'row', 'unknown'.
local function place(name)
  local kind, consumer, cursor, index = split(name)
  if index <= clear then
    return 'cleared'
  end
  if index > head then
    return 'beyond'
  end
  local log
  if kind == '2' then
    log = read_log(call('HGET', session_key('g'), consumer .. '\0' .. cursor))
    if not log then
      return 'unknown'
    end
    if index <= log.position then
      if log.done == index then
        return 'done', log, log
      end
      return 'passed'
    end
  end
  local bytes = call('HGET', row_key(index), name)
  if not bytes then
    return 'unknown'
  end
  local row = read_row(bytes)
  if row.status >= DONE then
    return 'done', { attempt = row.attempts, after = row.first, count = row.last }
  end
  return 'row', row, log
end

-- Whether a cause (8 bytes of attempt, and a head) is a current attempt.
local function is_current(cause)
  local name = string.sub(cause, 9)
  local _, _, _, index = split(name)
  if index <= clear or index > head then
    return false
  end
  local bytes = call('HGET', row_key(index), name)
  local row = bytes and read_row(bytes)
  return row and row.status == LIVE and row.holder and row.attempts == from_bytes('>I8', cause)
end
