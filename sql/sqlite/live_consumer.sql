-- The first consumer with a live head: ?1 sid, ?2 life, ?3 at or after this name. One row: consumer.
select consumer
from a2_heads
where sid = ?1 and life = ?2 and status = 1 and consumer >= ?3
order by consumer
limit 1
