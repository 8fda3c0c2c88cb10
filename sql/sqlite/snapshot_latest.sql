-- The latest snapshot: ?1 sid, ?2 reducer, from index ?3 on. One row: index.
select idx
from a2_snapshots
where sid = ?1 and reducer = ?2 and idx >= ?3
order by idx desc
limit 1
