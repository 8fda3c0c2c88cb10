-- Where logs stand: $1 sessions. Rows: session, the log's head (0: empty), its latest marker.
select s.session_id, coalesce(l.idx, 0) as head, coalesce(l.life, 0) as clear_index
from unnest($1::text[]) s(session_id)
left join lateral (
  select e.idx, e.life from a2.a2_events e
  where e.session_id = s.session_id
  order by e.idx desc limit 1
) l on true
