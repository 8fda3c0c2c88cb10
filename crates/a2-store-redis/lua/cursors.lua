-- A page of the cursors by consumer, kind (1 lane, 2 log, 3 event) and name: after this one (empty: from
-- the first), limit. A cursor is named by its consumer, U+0000, its kind, and its name or index in 8
-- bytes. Answers 'cursors', head, clear, whether there are more, and for each its name, position, head
-- (0: idle), and the head's row and error, each or nothing.

local after, limit = take(), tonumber(take())

local function names_in(key)
  return call('ZRANGEBYLEX', key, after == '' and '-' or '(' .. after, '+', 'LIMIT', 0, limit + 1)
end

-- The names of some kind without what stands for the kind, as fields of a hash; and their values.
local function read_records(key, found, kind, prefix)
  local fields, cursors = {}, {}
  for _, cursor in ipairs(found) do
    if cursor.kind == kind then
      fields[#fields + 1] = prefix .. cursor.consumer .. '\0' .. cursor.name
      cursors[#cursors + 1] = cursor
    end
  end
  for at, value in ipairs(#fields > 0 and get_many(key, fields) or {}) do
    cursors[at].record = value
  end
end

local names, more = merged(names_in(life_key('o')), names_in(session_key('q')), limit, is_before)
local found = {}
for at, name in ipairs(names) do
  local stop = string.find(name, '\0', 1, true)
  found[at] = {
    consumer = string.sub(name, 1, stop - 1), kind = string.sub(name, stop + 1, stop + 1),
    name = string.sub(name, stop + 2),
  }
end
read_records(KEYS[1], found, '1', 'n')
read_records(session_key('g'), found, '2', '')
local fields, heads = {}, {}
for _, cursor in ipairs(found) do
  local name
  if cursor.kind == '3' then
    cursor.head = from_bytes('>I8', cursor.name)
    cursor.position = cursor.head - 1
    name = head_name('0', cursor.consumer, '', cursor.head)
  else
    if cursor.kind == '1' then
      cursor.head, cursor.position = 0, clear
      if cursor.record then
        local _
        cursor.head, _, cursor.position = from_bytes('>I8I8I8', cursor.record)
      end
    else
      local log = read_log(cursor.record) or { head = 0, position = clear }
      cursor.head, cursor.position = log.head, log.position
    end
    name = head_name(cursor.kind, cursor.consumer, cursor.name, cursor.head)
  end
  if cursor.head > 0 then
    local key = row_key(cursor.head)
    cursor.of = name
    fields[key], heads[key] = fields[key] or {}, heads[key] or {}
    fields[key][#fields[key] + 1] = name
    heads[key][#heads[key] + 1] = cursor
  end
end
for key, wanted in pairs(fields) do
  for at, row in ipairs(get_many(key, wanted)) do
    heads[key][at].row = row
  end
end
local answer, bytes = { 'cursors', head, clear, more }, READ_BYTES
for at, cursor in ipairs(found) do
  if bytes < 0 then
    answer[4] = 1
    break
  end
  local text
  if cursor.row and read_row(cursor.row).error then
    text = call('HGET', row_key(cursor.head), '!' .. cursor.of)
    bytes = bytes - (text and #text or 0)
  end
  answer[#answer + 1] = { names[at], cursor.position, cursor.head, cursor.row or false, text or false }
end
return answer
