-- When the first timer of any session is due after ?1. One row.
select t.due_at
from a2_timers t join a2_sessions s on s.sid = t.sid
where t.due_at > ?1 and (t.origin is null or t.origin >= s.clear_index)
order by t.due_at
limit 1
