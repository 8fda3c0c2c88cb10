-- Leased and held heads by the end of that, then in head order: ?1 sid, ?2 life, ?3 consumer, after
-- (?4 end, ?5 index, ?6 kind, ?7 name), ending at ?8 or before, at most ?9: end, index, kind, name.
select held_until, idx, kind, name
from a2_heads
where sid = ?1 and life = ?2 and status = 1 and consumer = ?3
  and (held_until, idx, kind, name) > (?4, ?5, ?6, ?7) and held_until <= ?8
order by held_until, idx, kind, name
limit ?9
