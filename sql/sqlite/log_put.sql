-- Stores a log cursor: ?1 sid, ?2 consumer, ?3 name, ?4 position, ?5 head, ?6 types, ?7 to ?11 its
-- last completion: index, time, attempt, head before the returned events, their number.
insert into a2_logs (sid, consumer, name, position, head, types,
  done_idx, done_at, done_attempt, returned_after, returned)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
on conflict (sid, consumer, name) do update
set position = excluded.position, head = excluded.head, types = excluded.types,
  done_idx = excluded.done_idx, done_at = excluded.done_at,
  done_attempt = excluded.done_attempt, returned_after = excluded.returned_after,
  returned = excluded.returned
