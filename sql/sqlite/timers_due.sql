-- Due timers by due time and key: ?1 sid, ?2 the clear index, ?3 due at this or before, at most ?4.
-- Columns as in timers_page.
select key, due_at, origin, id, type, payload, targets
from a2_timers
where sid = ?1 and (origin is null or origin >= ?2) and due_at <= ?3
order by due_at, key
limit ?4
