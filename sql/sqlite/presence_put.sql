-- Stores a field: ?1 namespace, ?2 participant, ?3 field, ?4 value, ?5 seen, ?6 updated at, ?7
-- expires at.
insert into a2_presence (namespace, participant, field, value, seen, updated_at, expires_at)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
on conflict (namespace, participant, field) do update
set value = excluded.value, seen = excluded.seen, updated_at = excluded.updated_at,
  expires_at = excluded.expires_at
