-- Whether a consumer has a live head: ?1 sid, ?2 life, ?3 consumer. A row when it has.
select 1
from a2_heads
where sid = ?1 and life = ?2 and status = 1 and consumer = ?3
limit 1
