-- One event: ?1 sid, ?2 index. Columns as in event_range.
select idx, id, type, created_at, cause, payload
from a2_events
where sid = ?1 and idx = ?2
