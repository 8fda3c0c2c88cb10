-- The first recorded event of a type: ?1 sid, ?2 life, ?3 type, ?4 after this index. One row: the
-- index.
select idx
from a2_types
where sid = ?1 and life = ?2 and type = ?3 and idx > ?4
order by idx
limit 1
