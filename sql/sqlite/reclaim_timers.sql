-- Deletes timers whose origin lies below the marker: ?1 sid, ?2 the marker's index, at most ?3.
delete from a2_timers
where rowid in (
  select rowid
  from a2_timers
  where sid = ?1 and origin < ?2
  order by origin
  limit ?3
)
