-- Deletes a reducer's snapshots below the marker: ?1 sid, ?2 reducer, ?3 the marker's index, at
-- most ?4.
delete from a2_snapshots
where rowid in (
  select rowid
  from a2_snapshots
  where sid = ?1 and reducer = ?2 and idx < ?3
  order by idx
  limit ?4
)
