-- When the first timer of any session is due after $1: one row, or none.
select t.due_at
from a2.a2_timers t
where t.due_at > $1::bigint
  and (t.origin_index is null or t.origin_index >= coalesce((
    select e.life from a2.a2_events e where e.session_id = t.session_id
    order by e.idx desc limit 1
  ), 0))
order by t.due_at, t.session_id
limit 1
