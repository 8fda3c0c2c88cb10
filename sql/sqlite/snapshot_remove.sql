-- Removes a snapshot: ?1 sid, ?2 reducer, ?3 index.
delete from a2_snapshots where sid = ?1 and reducer = ?2 and idx = ?3
