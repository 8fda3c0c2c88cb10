-- The first cursor at or after a place: ?1 sid, ?2 consumer, ?3 kind, ?4 name. One row: consumer,
-- kind, name, and its first index.
select consumer, kind, name, idx
from a2_heads
where sid = ?1 and (consumer, kind, name) >= (?2, ?3, ?4)
order by consumer, kind, name, idx
limit 1
