-- Where logs stand: $1 sessions. Rows: session, the log's head (0: empty), its latest marker.
select s.session_id,
  coalesce((
    select e.idx from a2.a2_events e where e.session_id = s.session_id order by e.idx desc limit 1
  ), 0) as head,
  coalesce((
    select c.clear_index from a2.a2_clears c where c.session_id = s.session_id
  ), 0) as clear_index
from unnest($1::text[]) s(session_id)
