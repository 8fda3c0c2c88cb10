-- Changes a head: ?1 sid, ?2 consumer, ?3 kind, ?4 name, ?5 index; from ?6 on what it becomes.
update a2_heads
set status = ?6, attempt_count = ?7, first_claimed_at = ?8, last_claimed_at = ?9,
  claim_holder = ?10, held_until = ?11, failure_count = ?12, last_failed_at = ?13,
  last_failed_attempt = ?14, last_error = ?15, failed_at = ?16, done_at = ?17,
  done_attempt = ?18, returned_after = ?19, returned = ?20
where sid = ?1 and consumer = ?2 and kind = ?3 and name = ?4 and idx = ?5
