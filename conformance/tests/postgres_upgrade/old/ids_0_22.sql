-- 0.22: ids are unique in a session's lifetime: one that was used before the clear is used again.
create index a2_events_session_event_id on a2_events (session_id, event_id);
update a2_events set event_id = 'e5' where event_id = 'e2';
