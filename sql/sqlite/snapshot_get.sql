-- The newest snapshot: ?1 sid, ?2 reducer, from index ?3 through ?4. One row: index, state.
select idx, state
from a2_snapshots
where sid = ?1 and reducer = ?2 and idx >= ?3 and idx <= ?4
order by idx desc
limit 1
