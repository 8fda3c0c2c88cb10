-- The first reducer with a snapshot: ?1 sid, ?2 at or after this name. One row: reducer.
select reducer from a2_snapshots where sid = ?1 and reducer >= ?2 order by reducer limit 1
