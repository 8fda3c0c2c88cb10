-- A session by number: ?1 sid. One row: name, clear index, log head, the clear index that reclaim
-- is done with.
select s.name, s.clear_index,
  coalesce((select e.idx from a2_events e where e.sid = s.sid order by e.idx desc limit 1), 0),
  s.reclaimed
from a2_sessions s
where s.sid = ?1
