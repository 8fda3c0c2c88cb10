-- The events in (?2, ?3] of session ?1 in order, at most ?4: index, id, type, created at, cause,
-- payload.
select idx, id, type, created_at, cause, payload
from a2_events
where sid = ?1 and idx > ?2 and idx <= ?3
order by idx
limit ?4
