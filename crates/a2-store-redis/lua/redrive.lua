-- Redrives a dead letter: what is served, with the head and whether it is skipped (1) or tried again (0). Answers
-- 'redriven' or 'not_dead' with whether there is pending work; or 'corrupt' and an index.

local name, skip = ARGV[5], ARGV[6] == '1'
local what, row, log = place(name)
if what ~= 'row' or row.status ~= DEAD then
  return { 'not_dead', has_pending() }
end
local kind, consumer, cursor, index = split(name)
if skip then
  if not finish_head(name, row, log, nil, index) then
    return { 'corrupt', index }
  end
else
  row.status, row.dead_at, row.failures = LIVE, 0, 0
  call('HSET', row_key(index), name, write_row(row))
  call('ZREM', life_key('x'), dead_member(kind, consumer, cursor, index))
  add_free(consumer, kind, cursor, index)
end
finish()
publish('h', head, {})
return { 'redriven', has_pending() }
