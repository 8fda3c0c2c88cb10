-- Sessions that were ever appended to, by the bytes of their names: $1 after this one, $2 at most so
-- many. Rows: session, the log's head, its latest marker. Seeks from one session to the next.
with recursive found(session_id, n) as (
  (
    select e.session_id, 1 from a2.a2_events e
    where e.session_id > $1::text
    order by e.session_id, e.idx limit 1
  )
  union all
  select (
      select e.session_id from a2.a2_events e
      where e.session_id > f.session_id
      order by e.session_id, e.idx limit 1
    ), f.n + 1
  from found f
  where f.session_id is not null and f.n < $2::integer
)
select f.session_id, l.idx as head, l.life as clear_index
from found f
cross join lateral (
  select e.idx, e.life from a2.a2_events e
  where e.session_id = f.session_id
  order by e.idx desc limit 1
) l
where f.session_id is not null
order by f.n
