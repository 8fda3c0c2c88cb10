-- Stores an event: ?1 sid, ?2 index, ?3 id, ?4 type, ?5 created at, ?6 cause, ?7 payload.
insert into a2_events (sid, idx, id, type, created_at, cause, payload)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
