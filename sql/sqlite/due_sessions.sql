-- Timers of all sessions by due time and session: due from ?1 (there only sessions after ?2) through
-- ?3, at most ?4: due at, session.
select t.due_at, s.name
from a2_timers t join a2_sessions s on s.sid = t.sid
where t.due_at >= ?1 and t.due_at <= ?3 and (t.due_at > ?1 or s.name > ?2)
  and (t.origin is null or t.origin >= s.clear_index)
order by t.due_at, s.name
limit ?4
