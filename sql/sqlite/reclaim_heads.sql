-- Deletes a cursor's heads below the marker: ?1 sid, ?2 consumer, ?3 kind, ?4 name, ?5 the marker's
-- index, at most ?6.
delete from a2_heads
where sid = ?1 and consumer = ?2 and kind = ?3 and name = ?4 and idx in (
  select idx
  from a2_heads
  where sid = ?1 and consumer = ?2 and kind = ?3 and name = ?4 and idx <= ?5
  order by idx
  limit ?6
)
