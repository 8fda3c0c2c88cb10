-- Whether a snapshot is pinned: ?1 sid, ?2 reducer, ?3 its index. A row when it is.
select 1 from a2_pins where sid = ?1 and reducer = ?2 and snapshot = ?3 limit 1
