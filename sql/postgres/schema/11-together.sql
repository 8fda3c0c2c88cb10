-- Operations of several sessions that came in one call of the Postgres store, done by one statement each
-- where they are of the plain kind; what is not is left to the verbs, one by one.
--
-- A statement costs as much to start as several rows cost to find, so that sixteen operations together
-- cost less than half of what they cost apart. Rows are changed where they were found: `|| ''` keeps
-- the planner from looking for them by their session once more, through all of its rows.

-- The locks of p_session, taken or tried in their order.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_locks_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
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

-- The operations that may be done together: the first of each session whose lock is held. What is left
-- of a session comes after them.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_plain_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_plain_1(p_locked boolean[], p_session text[]) returns integer[]
language plpgsql as $body$
begin
  if (select count(distinct s.id) from unnest(p_session) s(id)) = cardinality(p_session) then
    return array_positions(p_locked, true);
  end if;
  return array(
    select min(s.n)::integer
    from unnest(p_session, p_locked) with ordinality s(id, locked, n)
    where s.locked
    group by s.id
    order by 1
  );
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_plain_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Appends single events: p_op are the places of operations whose locks are held, of different sessions;
-- the rest is as in a2_append_1. Only where there is one event and nothing to check but its id, which
-- nobody owns. Answers the operations that were done, where their logs stand now, the time, and the
-- sessions in which a served consumer got a live head.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_append_together_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_append_together_1(
  p_op integer[], p_now bigint[], p_session text[], p_expected bigint[], p_origin bigint[],
  p_event_end integer[], p_id text[], p_type text[], p_payload json[], p_size integer[],
  p_cause text[], p_target_end integer[], p_target_consumer text[], p_target_lane text[],
  s_consumer text[],
  out op integer[], out life bigint[], out head bigint[], out at bigint[], out live text[]
)
language plpgsql as $body$
declare
  v_now bigint := a2.a2_now_1();
begin
  select array_agg(f.op), array_agg(f.life), array_agg(f.head + 1), array_agg(f.at)
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
    where p_event_end[c.op] = case c.op when 1 then 1 else p_event_end[c.op - 1] + 1 end
      and p_expected[c.op] is null and p_origin[c.op] is null and p_cause[p_event_end[c.op]] is null
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
  select p_session[f.op], f.head, f.life, f.at, p_size[p_event_end[f.op]],
    p_id[p_event_end[f.op]], p_type[p_event_end[f.op]], p_payload[p_event_end[f.op]]
  from unnest(op, life, head, at) f(op, life, head, at);
  if p_target_end is null then
    return;
  end if;
  live := a2.a2_queue_together_1(op, life, head, p_session, p_target_end, p_target_consumer,
    p_target_lane, s_consumer);
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_append_together_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Where the logs of operations stand, and the time each is judged by; in the order of p_op.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_stand_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_stand_1(
  p_op integer[], p_now bigint[], p_session text[],
  out life bigint[], out head bigint[], out at bigint[]
)
language plpgsql as $body$
declare
  v_now bigint := a2.a2_now_1();
begin
  select array_agg(coalesce(e.life, 0)), array_agg(coalesce(e.idx, 0)),
    array_agg(coalesce(p_now[c.op], v_now))
  into life, head, at
  from unnest(p_op) c(op)
  left join lateral (
    select e.life, e.idx from a2.a2_events e
    where e.session_id = p_session[c.op]
    order by e.idx desc limit 1
  ) e on true;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_stand_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Claims one head each for operations whose locks are held, of different sessions: p_life, p_head and
-- p_at are in the order of p_op, the rest is as in a2_claim_available_1. Only where one head of a list of
-- consumers is wanted, nothing is left out, and no head is due. Answers, at the place of each operation
-- that was done, a row of part 3, which also has the log's head, marker and time.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_claim_together_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_claim_together_1(
  p_op integer[], p_life bigint[], p_head bigint[], p_at bigint[], p_session text[],
  c_holder text[], c_ttl bigint[], c_limit integer[], c_through bigint[], c_run integer[],
  x_end integer[], p_consumer text[]
) returns a2.a2_answer_1[]
language plpgsql as $body$
declare
  r a2.a2_answer_1;
  v_answer a2.a2_answer_1[];
begin
  if p_consumer is null then
    return null;
  end if;
  r.part := 3;
  for r.op, r.clear_index, r.head, r.at, r.consumer, r.kind, r.name, r.idx, r.event_id, r.event_type, r.payload,
    r.cause, r.created_at, r.attempt_count, r.first_claimed_at, r.last_claimed_at, r.claim_holder,
    r.claim_expires_at, r.failure_count, r.last_failed_at, r.last_failed_attempt, r.last_error
  in
    update a2.a2_heads h
    set held_until = a2.a2_after_1(n.at, c_ttl[n.op]), claim_holder = c_holder[n.op],
      attempt_count = h.attempt_count + 1, first_claimed_at = coalesce(h.first_claimed_at, n.at),
      last_claimed_at = n.at
    from (
      select f.op, f.life, f.head, f.at, n.tid,
        e.event_id, e.event_type, e.payload, e.cause, e.created_at
      from unnest(p_op, p_life, p_head, p_at) f(op, life, head, at)
      cross join lateral (
        select n.tid, n.idx
        from unnest(p_consumer) w(consumer)
        cross join lateral (
          select n.ctid as tid, n.idx, n.consumer, n.kind, n.name from a2.a2_heads n
          where n.session_id = p_session[f.op] and n.life = f.life and n.status = 1
            and n.consumer = w.consumer and n.held_until = 0
            and n.idx <= coalesce(c_through[f.op], 9007199254740991)
          order by n.held_until, n.idx, n.kind, n.name limit 1
        ) n
        order by n.idx, n.consumer, n.kind, n.name limit 1
      ) n
      cross join lateral (
        select e.event_id, e.event_type, e.payload, e.cause, e.created_at
        from a2.a2_events e
        where e.session_id = p_session[f.op] and e.idx >= n.idx and e.idx <= n.idx
        order by e.idx limit 1
      ) e
      where c_holder[f.op] is not null and c_limit[f.op] = 1 and coalesce(c_run[f.op], 1) = 1
        and (x_end is null or x_end[f.op] = case f.op when 1 then 0 else x_end[f.op - 1] end)
        and (
          select true
          from unnest(p_consumer) w(consumer)
          cross join lateral (
            select 1 from a2.a2_heads d
            where d.session_id = p_session[f.op] and d.life = f.life and d.status = 1
              and d.consumer = w.consumer and d.held_until > 0 and d.held_until <= f.at
            order by d.held_until, d.idx limit 1
          ) d
          limit 1
        ) is null
      offset 0
    ) n
    where h.ctid = n.tid and h.session_id || '' = p_session[n.op]
    returning n.op, n.life, n.head, n.at, h.consumer, h.kind, h.name, h.idx, n.event_id, n.event_type, n.payload,
      n.cause, n.created_at, h.attempt_count, h.first_claimed_at, h.last_claimed_at, h.claim_holder,
      h.held_until, h.failure_count, h.last_failed_at, h.last_failed_attempt, h.last_error
  loop
    v_answer[r.op] := r;
  end loop;
  return v_answer;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_claim_together_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Completes attempts: p_op are the places of operations whose locks are held, of different sessions; the
-- rest is as in a2_complete_attempt_1. Only current attempts on event cursors and lanes that keep no
-- snapshot and return at most one event (none where logs are declared), whose id nobody owns. Answers
-- the operations that were done, where their logs stand now, the time, how many events were returned,
-- and whether a served consumer has a live head (where that is asked).
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_complete_together_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_complete_together_1(
  p_op integer[], p_now bigint[], p_session text[], p_consumer text[], p_kind integer[], p_name text[],
  p_idx bigint[], p_attempt bigint[], p_cause text[],
  p_event_end integer[], p_id text[], p_type text[], p_payload json[], p_size integer[],
  p_target_end integer[], p_target_consumer text[], p_target_lane text[],
  p_live boolean, s_consumer text[], s_log text[],
  out op integer[], out life bigint[], out head bigint[], out at bigint[], out events integer[],
  out live boolean[]
)
language plpgsql as $body$
declare
  v_now bigint := a2.a2_now_1();
  v_tid tid[];
  v_next tid[];
  v_live text[];
begin
  select array_agg(f.op), array_agg(f.life), array_agg(f.head + f.returned), array_agg(f.at),
    array_agg(f.returned), array_agg(f.tid), array_agg(f.next)
  into op, life, head, at, events, v_tid, v_next
  from (
    select c.op, c.returned, e.life, e.idx as head, coalesce(p_now[c.op], v_now) as at, h.tid,
      case p_kind[c.op] when 1 then (
        select n.ctid from a2.a2_heads n
        where n.session_id = p_session[c.op] and n.consumer = p_consumer[c.op] and n.kind = 1
          and n.name = p_name[c.op] and n.idx > p_idx[c.op]
        order by n.idx limit 1
      ) end as next
    from (
      select c.op, coalesce(p_event_end[c.op] - case c.op when 1 then 0 else p_event_end[c.op - 1] end, 0)
        as returned
      from unnest(p_op) c(op)
      offset 0
    ) c
    cross join lateral (
      select e.life, e.idx from a2.a2_events e
      where e.session_id = p_session[c.op] and e.idx >= p_idx[c.op]
      order by e.idx desc limit 1
    ) e
    cross join lateral (
      select h.ctid as tid, h.status, h.claim_holder, h.attempt_count, h.pinned
      from a2.a2_heads h
      where h.session_id = p_session[c.op] and h.consumer = p_consumer[c.op]
        and h.kind = p_kind[c.op] and h.name = p_name[c.op]
        and h.idx >= p_idx[c.op] and h.idx <= p_idx[c.op]
      order by h.idx limit 1
    ) h
    where h.status = 1 and h.claim_holder is not null and h.attempt_count = p_attempt[c.op]
      and not h.pinned and p_idx[c.op] > e.life and p_kind[c.op] <> 2
      and (c.returned = 0 or (
        c.returned = 1 and s_log is null and e.idx < 9007199254740991 and (
          select true from a2.a2_events o
          where o.session_id = p_session[c.op] and o.life = e.life
            and o.event_id >= p_id[p_event_end[c.op]] and o.event_id <= p_id[p_event_end[c.op]]
          order by o.event_id limit 1
        ) is null
      ))
    offset 0
  ) f;
  if op is null then
    return;
  end if;
  update a2.a2_heads h
  set status = 3, held_until = 0, claim_holder = null, failed_at = null, done_at = f.at,
    done_attempt = p_attempt[f.op], returned_after = f.head - f.returned, returned = f.returned
  from unnest(op, head, at, events, v_tid) f(op, head, at, returned, tid)
  where h.ctid = f.tid and h.session_id || '' = p_session[f.op];
  update a2.a2_heads h set status = 1
  from (select n.op, n.next from unnest(op, v_next) n(op, next) where n.next is not null offset 0) n
  where h.ctid = n.next and h.session_id || '' = p_session[n.op];
  if 1 = any (events) then
    insert into a2.a2_events
      (session_id, idx, life, created_at, size, event_id, event_type, payload, cause)
    select p_session[f.op], f.head, f.life, f.at, p_size[p_event_end[f.op]],
      p_id[p_event_end[f.op]], p_type[p_event_end[f.op]], p_payload[p_event_end[f.op]],
      p_cause[f.op]::jsonb
    from unnest(op, life, head, at, events) f(op, life, head, at, returned)
    where f.returned = 1;
    if p_target_end is not null then
      v_live := a2.a2_queue_together_1(op, life, head, p_session, p_target_end, p_target_consumer,
        p_target_lane, s_consumer);
    end if;
  end if;
  if p_live then
    select array_agg(
      case
        when f.next is not null and (s_consumer is null or p_consumer[f.op] = any (s_consumer))
        then true
        when p_session[f.op] = any (v_live) then true
        else a2.a2_has_live_1(p_session[f.op], f.life, s_consumer)
      end)
    into live
    from unnest(op, life, v_next) f(op, life, next);
  end if;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_complete_together_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Queues one event of each of the operations p_op, at p_head of its session, on its targets. Answers the
-- sessions in which a served consumer got a live head.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_queue_together_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_queue_together_1(
  p_op integer[], p_life bigint[], p_head bigint[], p_session text[], p_target_end integer[],
  p_target_consumer text[], p_target_lane text[], s_consumer text[]
) returns text[]
language plpgsql as $body$
declare
  v_live text[];
begin
  with added as (
    insert into a2.a2_heads (session_id, idx, life, kind, status, consumer, name)
    select p_session[f.op], f.head, f.life,
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
    from unnest(p_op, p_life, p_head) f(op, life, head)
    cross join lateral generate_series(
      case f.op when 1 then 1 else p_target_end[f.op - 1] + 1 end, p_target_end[f.op]) t(k)
    returning session_id, consumer, status
  )
  select array_agg(a.session_id) into v_live
  from added a
  where a.status = 1 and (s_consumer is null or a.consumer = any (s_consumer));
  return v_live;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_queue_together_1');
  end if;
end
$a2$;
--> statement-breakpoint
