-- Brings one log cursor up to date: consumer, log, whether it backfills, its types. Answers 'woken',
-- head, clear, the cursor's position and head (0: idle), and the head's row and error, each or nothing.

local entry = { consumer = take(), log = take(), backfill = take() == '1', types = take() }
local log = touch(entry, head)
finish()
local row, text
if log.head > 0 then
  local name = head_name('2', entry.consumer, entry.log, log.head)
  row, text = unpack(call('HMGET', row_key(log.head), name, '!' .. name))
end
return { 'woken', head, clear, log.position, log.head, row or false, text or false }
