-- Deletes ids below the marker: ?1 sid, ?2 the marker's index, at most ?3.
delete from a2_ids
where (sid, life, id) in (
  select sid, life, id from a2_ids where sid = ?1 and life < ?2 order by life limit ?3
)
