-- Work that the handlers releases had not finished: an event that waits, one that is leased, a dead letter.

insert into a2_events (session_id, idx, event_id, event_type, payload, created_at, lane, lane_ready,
  first_claimed_at, last_claimed_at, attempt_count, failure_count, last_failed_at, last_failed_attempt,
  last_error, failed_at, claim_holder, claim_expires_at)
values
  ('waiting', 1, 'evt:8', 't', '1', 3000, null, true, null, null, 0, 0, null, null, null, null, null, null),
  ('waiting', 2, 'evt:9', 't', '1', 3001, 'l', false, 3050, 3050, 1, 0, null, null, null, null, 'w', 3080),
  ('waiting', 3, 'evt:10', 't', '1', 3002, 'l', true, 3051, 3051, 1, 1, 3060, 1, 'no', 3060, null, null);
