-- Deletes types below the marker: ?1 sid, ?2 the marker's index, at most ?3.
delete from a2_types
where (sid, life, type, idx) in (
  select sid, life, type, idx from a2_types where sid = ?1 and life < ?2 order by life limit ?3
)
