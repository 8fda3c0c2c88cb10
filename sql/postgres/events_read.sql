-- A range of a log: $1 session, $2 after this index, $3 through this one, $4 at most so many events,
-- ending with the one by which 16 MiB of payload are passed (where that is, is only looked for when
-- there are more: keeping a running sum doubles the cost of a read).
--
-- Rows: the log's head, its latest marker, then the event: index, id, type, payload, cause, created
-- at, in order of the index; one row without an event when there is none in the range.
select l.head, l.clear_index,
  e.idx, e.event_id, e.event_type, e.payload, e.cause::text as cause, e.created_at
from (
  select l.*, case
      when coalesce((
        select sum(e.bytes) from (
          select coalesce(e.size, octet_length(e.payload::text)) as bytes
          from a2.a2_events e
          where e.session_id = $1::text and e.idx > l.first and e.idx <= l.last
          order by e.idx
          limit $4::integer
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
            limit $4::integer
          ) e
        ) e
        where e.total > 16777216
        order by e.idx
        limit 1
      )
    end as cut
  from (
    select l.*, greatest($2::bigint, l.clear_index - 1) as first, least($3::bigint, l.head) as last
    from (
      select coalesce(max(e.idx), 0) as head, coalesce(max(e.life), 0) as clear_index
      from (
        select e.idx, e.life from a2.a2_events e
        where e.session_id = $1::text
        order by e.idx desc limit 1
      ) e
    ) l
    offset 0
  ) l
  offset 0
) l
left join lateral (
  select e.idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at
  from a2.a2_events e
  where e.session_id = $1::text and e.idx > l.first and e.idx <= l.cut
  order by e.idx
  limit $4::integer
) e on true
