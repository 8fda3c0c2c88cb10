-- Stores an event: ?1 sid, ?2 index, ?3 life, ?4 id, ?5 type, ?6 created at, ?7 cause, ?8 payload.
insert into a2_events (sid, idx, life, id, type, created_at, cause, payload)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
