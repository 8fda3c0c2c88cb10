-- 0.21: the ids of all sessions are unique together.
create unique index a2_events_event_id on a2_events (event_id);
