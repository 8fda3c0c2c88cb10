-- Timers of all sessions by due time and session: due from $1 (there only those of sessions after $2)
-- through $3, at most $4. Rows: due at, session.
select t.due_at, t.session_id
from a2.a2_timers t
where (t.due_at, t.session_id) > ($1::bigint, $2::text) and t.due_at <= $3::bigint
  and (t.origin_index is null or t.origin_index >= coalesce((
    select e.life from a2.a2_events e where e.session_id = t.session_id
    order by e.idx desc limit 1
  ), 0))
order by t.due_at, t.session_id
limit $4::integer
