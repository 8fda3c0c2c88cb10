-- Timers by key: ?1 sid, ?2 the clear index, ?3 after this key, at most ?4.
select key, due_at, origin, id, type, payload, targets
from a2_timers
where sid = ?1 and (origin is null or origin >= ?2) and key > ?3
order by key
limit ?4
