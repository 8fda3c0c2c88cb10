-- A session's timers by key: $1 session, $2 after this key, $3 at most so many, ending with the one by
-- which 16 MiB of payload are passed. Rows: key, due at, origin, the event's id, type and payload, the
-- targets' consumers and lanes (null: an event cursor).
select t.timer_key, t.due_at, t.origin_index, t.event_id, t.event_type, t.payload, t.target_consumer,
  t.target_lane
from (
  select t.*, sum(t.size) over (order by t.timer_key rows unbounded preceding) - t.size as before
  from (
    select t.*
    from a2.a2_timers t
    where t.session_id = $1::text and t.timer_key > $2::text
      and (t.origin_index is null or t.origin_index >= coalesce((
        select e.life from a2.a2_events e where e.session_id = $1::text
        order by e.idx desc limit 1
      ), 0))
    order by t.timer_key
    limit $3::integer
  ) t
) t
where t.before <= 16777216
order by t.timer_key
