-- Deletes pins of a reducer's snapshots below the marker: ?1 sid, ?2 reducer, ?3 the marker's index,
-- at most ?4.
delete from a2_pins
where (sid, consumer, kind, name, idx, reducer, snapshot) in (
  select sid, consumer, kind, name, idx, reducer, snapshot
  from a2_pins
  where sid = ?1 and reducer = ?2 and snapshot < ?3
  order by snapshot
  limit ?4
)
