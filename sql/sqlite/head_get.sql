-- One head: ?1 sid, ?2 consumer, ?3 kind, ?4 name, ?5 index.
select status, attempt_count, first_claimed_at, last_claimed_at, claim_holder, held_until,
  failure_count, last_failed_at, last_failed_attempt, last_error, failed_at,
  done_at, done_attempt, returned_after, returned
from a2_heads
where sid = ?1 and consumer = ?2 and kind = ?3 and name = ?4 and idx = ?5
