-- When a session's next timer is due: ?1 sid, ?2 the clear index. One row.
select due_at
from a2_timers
where sid = ?1 and (origin is null or origin >= ?2)
order by due_at
limit 1
