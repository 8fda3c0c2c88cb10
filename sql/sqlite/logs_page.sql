-- Log cursors by consumer and name: ?1 sid, at or after (?2 consumer, ?3 name), at most ?4.
select consumer, name, position, head, types, done_idx, done_at, done_attempt, returned_after,
  returned
from a2_logs
where sid = ?1 and (consumer, name) >= (?2, ?3)
order by consumer, name
limit ?4
