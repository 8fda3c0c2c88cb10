-- Dead-lettered heads in head order: ?1 sid, ?2 life, ?3 consumer, after (?4 index, ?5 kind, ?6
-- name), at most ?7: index, kind, name.
select idx, kind, name
from a2_heads
where sid = ?1 and life = ?2 and status = 2 and consumer = ?3
  and (idx, kind, name) > (?4, ?5, ?6)
order by idx, kind, name
limit ?7
