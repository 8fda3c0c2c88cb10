-- Operations of several sessions that came in one call of the Postgres store, done by one statement each
-- where they are of the plain kind; what is not is left to the verbs, one by one.
--
-- A statement costs as much to start as several rows cost to find, so that sixteen operations together
-- cost less than half of what they cost apart.

-- The locks of p_session, taken or tried in their order.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if to_regproc(prefix || 'a2_locks_1') is null then
    execute replace(replace($sql$
create function a2.a2_locks_1(p_session text[], p_try boolean) returns boolean[]
language plpgsql as $body$
declare
  v_locked boolean[] := '{}';
begin
  for v_op in 1 .. cardinality(p_session) loop
    v_locked := v_locked || a2.a2_lock_1(p_session[v_op], p_try);
  end loop;
  return v_locked;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_locks_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The operations of an append that can be done together: locked, of different sessions, each with one
-- event and nothing to check but its id.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if to_regproc(prefix || 'a2_plain_1') is null then
    execute replace(replace($sql$
create function a2.a2_plain_1(
  p_locked boolean[], p_session text[], p_event_end integer[], p_expected bigint[], p_origin bigint[],
  p_cause text[]
) returns integer[]
language plpgsql as $body$
declare
  v_plain integer[] := '{}';
  v_last integer := 0;
begin
  if (select count(distinct s.id) from unnest(p_session) s(id)) < cardinality(p_session) then
    return v_plain;
  end if;
  for v_op in 1 .. cardinality(p_session) loop
    if p_locked[v_op] and p_event_end[v_op] = v_last + 1
      and (p_expected is null or p_expected[v_op] is null)
      and (p_origin is null or p_origin[v_op] is null)
      and (p_cause is null or p_cause[v_last + 1] is null)
    then
      v_plain := v_plain || v_op;
    end if;
    v_last := p_event_end[v_op];
  end loop;
  return v_plain;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_plain_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Appends single events: p_op are the places of operations whose locks are held, of different sessions,
-- each with one event (the last of p_event_end) and nothing to check but its id. The rest is as in
-- a2_append_1. Answers the operations that were done, where their logs stood, the time, and the
-- sessions in which a served consumer got a live head. Those whose id is owned are left.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if to_regproc(prefix || 'a2_append_together_1') is null then
    execute replace(replace($sql$
create function a2.a2_append_together_1(
  p_op integer[], p_now bigint[], p_session text[], p_event_end integer[], p_id text[], p_type text[],
  p_payload json[], p_size integer[], p_target_end integer[], p_target_consumer text[],
  p_target_lane text[], s_consumer text[],
  out op integer[], out life bigint[], out head bigint[], out at bigint[], out live text[]
)
language plpgsql as $body$
declare
  v_now bigint := a2.a2_now_1();
begin
  select array_agg(f.op), array_agg(f.life), array_agg(f.head), array_agg(f.at)
  into op, life, head, at
  from (
    select c.op, coalesce(e.life, 0) as life, coalesce(e.idx, 0) as head,
      coalesce(p_now[c.op], v_now) as at
    from unnest(p_op) c(op)
    left join lateral (
      select e.life, e.idx from a2.a2_events e
      where e.session_id = p_session[c.op]
      order by e.idx desc limit 1
    ) e on true
    offset 0
  ) f
  where f.head < 9007199254740991 and (
    select o.event_id = p_id[p_event_end[f.op]]
    from a2.a2_events o
    where o.session_id = p_session[f.op] and o.life = f.life
      and o.event_id >= p_id[p_event_end[f.op]] and o.event_id <= p_id[p_event_end[f.op]]
    order by o.event_id limit 1
  ) is not true;
  if op is null then
    return;
  end if;
  insert into a2.a2_events
    (session_id, idx, life, created_at, size, event_id, event_type, payload)
  select p_session[f.op], f.head + 1, f.life, f.at, p_size[p_event_end[f.op]],
    p_id[p_event_end[f.op]], p_type[p_event_end[f.op]], p_payload[p_event_end[f.op]]
  from unnest(op, life, head, at) f(op, life, head, at);
  if p_target_end is null then
    return;
  end if;
  with added as (
    insert into a2.a2_heads (session_id, idx, life, kind, status, consumer, name)
    select p_session[f.op], f.head + 1, f.life,
      case when p_target_lane[t.k] is null then 0 else 1 end,
      case
        when p_target_lane[t.k] is null then 1
        when coalesce((
          select h.status = 3 or h.idx <= f.life
          from a2.a2_heads h
          where h.session_id = p_session[f.op] and h.consumer = p_target_consumer[t.k]
            and h.kind = 1 and h.name = p_target_lane[t.k]
          order by h.idx desc limit 1
        ), true) then 1
        else 0
      end,
      p_target_consumer[t.k], coalesce(p_target_lane[t.k], '')
    from unnest(op, life, head) f(op, life, head)
    cross join lateral generate_series(
      case f.op when 1 then 1 else p_target_end[f.op - 1] + 1 end, p_target_end[f.op]) t(k)
    returning session_id, consumer, status
  )
  select array_agg(a.session_id) into live
  from added a
  where a.status = 1 and (s_consumer is null or a.consumer = any (s_consumer));
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_append_together_1');
  end if;
end
$a2$;
--> statement-breakpoint
