-- Appending to logs of the Postgres store.

-- Appends batches of events to sessions; one operation for each of p_session.
--
-- p_try: locks are tried, and an operation that misses its lock is `deferred`. p_expected: the head
-- that must be. p_origin: no clear may lie above it. p_event_end: where each operation's events end in
-- p_id, p_type, p_payload, p_size (bytes of the payload's text), p_cause. p_target_end: where its
-- targets end in p_target_event (the event's place in p_id), p_target_consumer, p_target_lane (null:
-- the event's own cursor). s_*: what the caller serves.
--
-- Answers a row of part 0 for each operation: appended (n events, the last at head), replayed (the
-- stored events follow as part 1), deferred, partial_duplicate (ids), head_conflict, session_cleared,
-- superseded_attempt, full.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_append_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_append_1(
  p_try boolean, p_now bigint[], p_session text[], p_expected bigint[], p_origin bigint[],
  p_event_end integer[], p_id text[], p_type text[], p_payload json[], p_size integer[],
  p_cause text[],
  p_target_end integer[], p_target_event integer[], p_target_consumer text[], p_target_lane text[],
  s_consumer text[], s_log text[], s_backfill boolean[], s_types_end integer[], s_types text[]
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  r a2.a2_answer_1;
  v_session text;
  v_life bigint;
  v_head bigint;
  v_owned integer;
  v_stored boolean;
  v_now bigint;
  v_first integer;
  v_last integer := 0;
  v_count integer;
  v_target integer;
  v_last_target integer := 0;
  v_live text[];
  v_locked boolean[];
  v_free boolean;
  v_plain integer[] := '{}';
  -- What was done together.
  d_op integer[];
  d_life bigint[];
  d_head bigint[];
  d_at bigint[];
  d_live text[];
  v_place integer := 1;
begin
  if cardinality(p_session) > 1 then
    v_locked := a2.a2_locks_1(p_session, p_try);
    v_plain := a2.a2_plain_1(v_locked, p_session);
    if cardinality(v_plain) > 1 then
      select t.op, t.life, t.head, t.at, t.live into d_op, d_life, d_head, d_at, d_live
      from a2.a2_append_together_1(v_plain, p_now, p_session, p_expected, p_origin,
        p_event_end, p_id, p_type, p_payload, p_size, p_cause, p_target_end, p_target_consumer, p_target_lane, s_consumer) t;
    end if;
    if cardinality(d_op) = cardinality(p_session) and s_log is null then
      return query
      select d.op, 0, 'appended', d.head, d.life, d.at,
        case
          when p_session[d.op] = any (d_live) then true
          else a2.a2_has_live_1(p_session[d.op], d.life, s_consumer)
        end,
        1::bigint, null::text[], null::text, null::smallint, null::text, null::bigint, null::text,
        null::text, null::json, null::text, null::bigint, null::bigint, null::bigint, null::bigint,
        null::text, null::bigint, null::bigint, null::bigint, null::bigint, null::text, null::bigint
      from unnest(d_op, d_life, d_head, d_at) d(op, life, head, at);
      return;
    end if;
  end if;
  for v_op in 1 .. cardinality(p_session) loop
    v_session := p_session[v_op];
    v_first := v_last + 1;
    v_last := p_event_end[v_op];
    v_count := v_last - v_first + 1;
    v_target := v_last_target + 1;
    v_last_target := coalesce(p_target_end[v_op], v_last_target);
    r := null;
    r.op := v_op;
    r.part := 0;
    if d_op[v_place] = v_op then
      r.status := 'appended';
      r.n := 1;
      r.clear_index := d_life[v_place];
      r.head := d_head[v_place];
      r.at := d_at[v_place];
      r.pending := s_log is not null and a2.a2_touch_logs_1(v_session, r.clear_index, r.head - 1,
        r.head, p_type[v_last : v_last], s_consumer, s_log, s_backfill, s_types_end, s_types,
        null, null);
      r.pending := r.pending or coalesce(v_session = any (d_live), false)
        or a2.a2_has_live_1(v_session, r.clear_index, s_consumer);
      return next r;
      v_place := v_place + 1;
      continue;
    end if;
    if v_locked is null then
      v_free := a2.a2_lock_1(v_session, p_try);
    else
      v_free := v_locked[v_op];
    end if;
    if not v_free then
      r.status := 'deferred';
      return next r;
      continue;
    end if;
    v_now := coalesce(p_now[v_op], a2.a2_now_1());

    select e.life, e.idx into v_life, v_head
    from a2.a2_events e where e.session_id = v_session order by e.idx desc limit 1;
    if not found then
      v_life := 0;
      v_head := 0;
    end if;
    r.head := v_head;
    r.clear_index := v_life;
    r.at := v_now;

    if v_count = 0 then
      r.status := 'appended';
      r.n := 0;
      r.pending := a2.a2_has_live_1(v_session, v_life, s_consumer);
      return next r;
      continue;
    end if;
    v_stored := false;
    if v_count > 1 then
      r.ids := a2.a2_owned_1(v_session, v_life, p_id[v_first : v_last]);
      v_owned := cardinality(r.ids);
      if v_owned not in (0, v_count) then
        r.status := 'partial_duplicate';
        return next r;
        continue;
      end if;
      r.ids := null;
    elsif p_expected[v_op] is null and p_origin[v_op] is null and p_cause[v_first] is null
      and v_head < 9007199254740991
    then
      -- Nothing is left to check but who owns the id: the index does that on the way.
      insert into a2.a2_events
        (session_id, idx, life, created_at, size, event_id, event_type, payload)
      values (v_session, v_head + 1, v_life, v_now, p_size[v_first], p_id[v_first],
        p_type[v_first], p_payload[v_first])
      on conflict (session_id, life, event_id) do nothing;
      v_stored := found;
      v_owned := case when found then 0 else 1 end;
    else
      v_owned := case when a2.a2_owner_1(v_session, v_life, p_id[v_first]) > 0 then 1 else 0 end;
    end if;
    if v_owned > 0 then
      r.status := 'replayed';
      r.n := v_count;
      r.pending := a2.a2_has_live_1(v_session, v_life, s_consumer);
      return next r;
      return query select * from a2.a2_events_of_1(v_op, v_session, v_life, p_id[v_first : v_last]);
      continue;
    end if;
    if p_expected[v_op] <> v_head then
      r.status := 'head_conflict';
      return next r;
      continue;
    end if;
    if p_origin[v_op] < v_life then
      r.status := 'session_cleared';
      return next r;
      continue;
    end if;
    if p_cause is not null then
      for v_event in v_first .. v_last loop
        if p_cause[v_event] is not null
          and not a2.a2_is_current_1(v_session, v_life, p_cause[v_event]::json)
        then
          r.status := 'superseded_attempt';
          exit;
        end if;
      end loop;
      if r.status is not null then
        return next r;
        continue;
      end if;
    end if;
    if v_head + v_count > 9007199254740991 then
      r.status := 'full';
      return next r;
      continue;
    end if;

    v_live := null;
    if v_count = 1 then
      if not v_stored then
        insert into a2.a2_events
          (session_id, idx, life, created_at, size, event_id, event_type, payload, cause)
        values (v_session, v_head + 1, v_life, v_now, p_size[v_first], p_id[v_first],
          p_type[v_first], p_payload[v_first], p_cause[v_first]::jsonb);
      end if;
      for v_k in v_target .. v_last_target loop
        if a2.a2_enqueue_1(
          v_session, v_life, v_head + 1, p_target_consumer[v_k], p_target_lane[v_k])
        then
          v_live := v_live || p_target_consumer[v_k];
        end if;
      end loop;
    else
      v_live := a2.a2_store_events_1(v_session, v_life, v_head, v_now,
        p_id[v_first : v_last], p_type[v_first : v_last], p_payload[v_first : v_last],
        p_size[v_first : v_last], p_cause[v_first : v_last], null,
        p_target_event[v_target : v_last_target], v_first - 1,
        p_target_consumer[v_target : v_last_target], p_target_lane[v_target : v_last_target]);
    end if;
    r.head := v_head + v_count;
    r.pending := false;
    if s_log is not null then
      r.pending := a2.a2_touch_logs_1(v_session, v_life, v_head, r.head, p_type[v_first : v_last],
        s_consumer, s_log, s_backfill, s_types_end, s_types, null, null);
    end if;
    r.status := 'appended';
    r.n := v_count;
    -- What was just made live need not be looked for.
    r.pending := r.pending
      or coalesce(cardinality(v_live) > 0 and (s_consumer is null or v_live && s_consumer), false)
      or a2.a2_has_live_1(v_session, v_life, s_consumer);
    return next r;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_append_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The index of the event that owns an id in this lifetime.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_owner_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_owner_1(p_session text, p_life bigint, p_id text) returns bigint
language plpgsql as $body$
begin
  return (
    select case e.event_id when p_id then e.idx end
    from a2.a2_events e
    where e.session_id = p_session and e.life = p_life
      and e.event_id >= p_id and e.event_id <= p_id
    order by e.event_id limit 1
  );
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_owner_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The ids that are owned in this lifetime, in the order given.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_owned_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_owned_1(p_session text, p_life bigint, p_id text[]) returns text[]
language plpgsql as $body$
begin
  return (
    select coalesce(array_agg(i.id order by i.n), '{}')
    from unnest(p_id) with ordinality i(id, n)
    cross join lateral (
      select e.event_id from a2.a2_events e
      where e.session_id = p_session and e.life = p_life
        and e.event_id >= i.id and e.event_id <= i.id
      order by e.event_id limit 1
    ) e
    where e.event_id = i.id
  );
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_owned_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The events that own these ids in this lifetime, in the order given, as rows of part 1.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_events_of_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_events_of_1(p_op integer, p_session text, p_life bigint, p_id text[])
returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  r a2.a2_answer_1;
begin
  r.op := p_op;
  r.part := 1;
  for r.idx, r.event_id, r.event_type, r.payload, r.cause, r.created_at in
    select e.idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at
    from unnest(p_id) with ordinality i(id, n)
    cross join lateral (
      select * from a2.a2_events e
      where e.session_id = p_session and e.life = p_life
        and e.event_id >= i.id and e.event_id <= i.id
      order by e.event_id limit 1
    ) e
    where e.event_id = i.id
    order by i.n
  loop
    return next r;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_events_of_1');
  end if;
end
$a2$;
--> statement-breakpoint
