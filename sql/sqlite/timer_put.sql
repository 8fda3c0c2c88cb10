-- Stores a timer in place of one of the same key: ?1 sid, ?2 key, ?3 due at, ?4 origin, ?5 id, ?6
-- type, ?7 payload, ?8 targets.
insert into a2_timers (sid, key, due_at, origin, id, type, payload, targets)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
on conflict (sid, key) do update
set due_at = excluded.due_at, origin = excluded.origin, id = excluded.id, type = excluded.type,
  payload = excluded.payload, targets = excluded.targets
