-- Free heads in head order: ?1 sid, ?2 life, ?3 consumer, after (?4 index, ?5 kind, ?6 name), up to
-- index ?7, at most ?8: index, kind, name.
select idx, kind, name
from a2_heads
where sid = ?1 and life = ?2 and status = 1 and consumer = ?3 and held_until is null
  and (idx, kind, name) > (?4, ?5, ?6) and idx <= ?7
order by idx, kind, name
limit ?8
