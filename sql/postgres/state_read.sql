-- A reducer's newest snapshot and the events after it: $1 session, $2 reducer, $3 events through this
-- index, $4 no snapshot above this one.
--
-- Rows: part, the log's head, its latest marker, the latest snapshot's index; then of the snapshot
-- (part 0, one row, its index null when there is none): index, null, null, state, null, null; of the
-- events (part 1): index, id, type, payload, cause, created at. At most 10,000 events, ending with the
-- one by which 16 MiB of payload are passed.
with log as materialized (
  select l.*, (
      select s.up_to_index from a2.a2_snapshots s
      where s.session_id = $1::text and s.reducer_name = $2::text and s.up_to_index >= l.clear_index
      order by s.up_to_index desc limit 1
    ) as latest
  from (
    select coalesce(max(e.idx), 0) as head, coalesce(max(e.life), 0) as clear_index
    from (
      select e.idx, e.life from a2.a2_events e
      where e.session_id = $1::text
      order by e.idx desc limit 1
    ) e
  ) l
),
snapshot as materialized (
  select s.up_to_index, s.state
  from log l
  cross join lateral (
    select s.up_to_index, s.state from a2.a2_snapshots s
    where s.session_id = $1::text and s.reducer_name = $2::text
      and s.up_to_index >= l.clear_index and s.up_to_index <= $4::bigint
    order by s.up_to_index desc limit 1
  ) s
)
select 0 as part, l.head, l.clear_index, l.latest, s.up_to_index as idx, null::text as event_id,
  null::text as event_type, s.state as payload, null::text as cause, null::bigint as created_at
from log l
left join snapshot s on true
union all
select 1, l.head, l.clear_index, l.latest, e.idx, e.event_id, e.event_type, e.payload,
  e.cause::text, e.created_at
from (
  select l.*, case
      when coalesce((
        select sum(e.bytes) from (
          select coalesce(e.size, octet_length(e.payload::text)) as bytes
          from a2.a2_events e
          where e.session_id = $1::text and e.idx > l.first and e.idx <= l.last
          order by e.idx
          limit 10000
        ) e
      ), 0) <= 16777216 then l.last
      else (
        select e.idx from (
          select e.idx, sum(e.bytes) over (order by e.idx rows unbounded preceding) as total
          from (
            select e.idx, coalesce(e.size, octet_length(e.payload::text)) as bytes
            from a2.a2_events e
            where e.session_id = $1::text and e.idx > l.first and e.idx <= l.last
            order by e.idx
            limit 10000
          ) e
        ) e
        where e.total > 16777216
        order by e.idx
        limit 1
      )
    end as cut
  from (
    select l.*, greatest((select s.up_to_index from snapshot s), l.clear_index - 1, 0) as first,
      least($3::bigint, l.head) as last
    from log l
    offset 0
  ) l
  offset 0
) l
cross join lateral (
  select e.idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at
  from a2.a2_events e
  where e.session_id = $1::text and e.idx > l.first and e.idx <= l.cut
  order by e.idx
  limit 10000
) e
