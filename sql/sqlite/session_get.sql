-- Where a session stands: ?1 its name. One row: sid, clear index, log head; none for an unknown one.
select s.sid, s.clear_index,
  coalesce((select e.idx from a2_events e where e.sid = s.sid order by e.idx desc limit 1), 0)
from a2_sessions s
where s.name = ?1
