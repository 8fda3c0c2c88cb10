-- The last row of a lane: ?1 sid, ?2 consumer, ?3 lane. One row: index, status.
select idx, status
from a2_heads
where sid = ?1 and consumer = ?2 and kind = 1 and name = ?3
order by idx desc
limit 1
