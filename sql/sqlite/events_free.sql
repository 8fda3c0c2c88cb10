-- Free event cursors by index: ?1 sid, ?2 life, ?3 consumer, ?4 after this index, at most ?5: index.
select idx
from a2_heads
where sid = ?1 and life = ?2 and status = 1 and consumer = ?3 and held_until is null
  and idx > ?4 and kind = 0
order by idx
limit ?5
