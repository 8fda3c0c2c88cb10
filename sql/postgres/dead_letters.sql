-- A session's dead letters in the order of heads: $1 session, after the head ($2 index, $3 consumer,
-- $4 kind, $5 name; -1 and empty names for the first page), $6 at most so many, ending with the one by
-- which 16 MiB of payload are passed.
--
-- Rows: the columns of a2_answer_1, part 3. A head without an event id is one whose event is missing.
select 1 as op, 3 as part, null::text as status, null::bigint as head, null::bigint as clear_index,
  null::bigint as at, null::boolean as pending, null::bigint as n, null::text[] as ids,
  d.consumer, d.kind, d.name, d.idx, d.event_id, d.event_type, d.payload, d.cause::text as cause,
  d.created_at, d.attempt_count, d.first_claimed_at, d.last_claimed_at, null::text as claim_holder,
  null::bigint as claim_expires_at, d.failure_count, d.last_failed_at, d.last_failed_attempt,
  d.last_error, d.failed_at
from (
  select d.*, e.event_id, e.event_type, e.payload, e.cause, e.created_at,
    sum(e.bytes) over (order by d.idx, d.consumer, d.kind, d.name rows unbounded preceding) - e.bytes
      as before
  from (
    select h.*
    from a2.a2_heads h
    where h.session_id = $1::text and h.status = 2
      and h.life = coalesce((
        select e.life from a2.a2_events e where e.session_id = $1::text
        order by e.idx desc limit 1
      ), 0)
      and (h.idx, h.consumer, h.kind, h.name) > ($2::bigint, $3::text, $4::integer, $5::text)
    order by h.idx, h.consumer, h.kind, h.name
    limit $6::integer
  ) d
  left join lateral (
    select e.idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at,
      coalesce(e.size, octet_length(e.payload::text)) as bytes
    from a2.a2_events e
    where e.session_id = $1::text and e.idx >= d.idx and e.idx <= d.idx
    order by e.idx limit 1
  ) e on e.idx = d.idx
) d
where d.before is null or d.before <= 16777216
order by d.idx, d.consumer, d.kind, d.name
