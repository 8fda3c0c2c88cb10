-- A log cursor: ?1 sid, ?2 consumer, ?3 name. Columns as in logs_page, without the key.
select position, head, types, done_idx, done_at, done_attempt, returned_after, returned
from a2_logs
where sid = ?1 and consumer = ?2 and name = ?3
