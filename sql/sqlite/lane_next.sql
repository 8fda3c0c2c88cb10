-- The first row of a lane after an index: ?1 sid, ?2 consumer, ?3 lane, ?4 index. One row: index,
-- status.
select idx, status
from a2_heads
where sid = ?1 and consumer = ?2 and kind = 1 and name = ?3 and idx > ?4
order by idx
limit 1
