-- A timer: ?1 sid, ?2 key, ?3 the clear index. Columns as in timers_page.
select key, due_at, origin, id, type, payload, targets
from a2_timers
where sid = ?1 and key = ?2 and (origin is null or origin >= ?3)
