-- What several verbs of the Postgres store do with rows: store events and queue them, move logs, look
-- for what is live, release pins.
--
-- Each runs under the session's lock and sees what was written before it in the same call.

-- Whether one of the consumers (null: any) has a live head.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_has_live_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_has_live_1(p_session text, p_life bigint, p_consumers text[]) returns boolean
language plpgsql as $body$
begin
  if p_consumers is null then
    return (
      select true from a2.a2_heads h
      where h.session_id = p_session and h.life = p_life and h.status = 1
      order by h.consumer, h.held_until, h.idx limit 1
    ) is not null;
  end if;
  if cardinality(p_consumers) = 1 then
    -- By far the most frequent case, at three quarters of the cost.
    return (
      select true from a2.a2_heads h
      where h.session_id = p_session and h.life = p_life and h.consumer = p_consumers[1]
        and h.status = 1
      order by h.held_until, h.idx limit 1
    ) is not null;
  end if;
  return (
    select true
    from unnest(p_consumers) c(consumer)
    cross join lateral (
      select 1 from a2.a2_heads h
      where h.session_id = p_session and h.life = p_life and h.consumer = c.consumer and h.status = 1
      order by h.held_until, h.idx limit 1
    ) live
    limit 1
  ) is not null;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_has_live_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Whether a cause names a current attempt.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_is_current_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_is_current_1(p_session text, p_life bigint, p_cause json) returns boolean
language plpgsql as $body$
declare
  v_idx bigint := (p_cause ->> 'index')::bigint;
begin
  return v_idx > p_life and coalesce((
    select h.status = 1 and h.attempt_count = (p_cause ->> 'attempt')::bigint
      and h.attempt_count > 0 and h.claim_holder is not null
    from a2.a2_heads h
    where h.session_id = p_session and h.consumer = p_cause ->> 'consumer'
      and h.kind = case
        when p_cause ->> 'kind' = 'log' then 2 when p_cause ->> 'lane' is null then 0 else 1
      end
      and h.name = coalesce(p_cause ->> 'lane', '') and h.idx = v_idx
  ), false);
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_is_current_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Adds the head of one target of the event at p_idx; answers whether it is live. A lane is idle when
-- its last row is done or of an earlier lifetime.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_enqueue_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_enqueue_1(
  p_session text, p_life bigint, p_idx bigint, p_consumer text, p_lane text
) returns boolean
language plpgsql as $body$
declare
  v_live boolean;
begin
  if p_lane is null then
    insert into a2.a2_heads (session_id, idx, life, kind, status, consumer, name)
    values (p_session, p_idx, p_life, 0, 1, p_consumer, '');
    return true;
  end if;
  insert into a2.a2_heads (session_id, idx, life, kind, status, consumer, name)
  values (p_session, p_idx, p_life, 1, case
    when coalesce((
      select h.status = 3 or h.idx <= p_life
      from a2.a2_heads h
      where h.session_id = p_session and h.consumer = p_consumer and h.kind = 1 and h.name = p_lane
      order by h.idx desc limit 1
    ), true) then 1 else 0 end, p_consumer, p_lane)
  returning status = 1 into v_live;
  return v_live;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_enqueue_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Stores events after p_head and queues them on their targets (p_target_event counts from
-- p_offset + 1); answers the consumers that got a live head. p_cause is for all of them.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_store_events_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_store_events_1(
  p_session text, p_life bigint, p_head bigint, p_now bigint,
  p_id text[], p_type text[], p_payload json[], p_size integer[], p_causes text[], p_cause text,
  p_target_event integer[], p_offset integer, p_target_consumer text[], p_target_lane text[]
) returns text[]
language plpgsql as $body$
declare
  v_live text[];
begin
  insert into a2.a2_events (session_id, idx, life, created_at, size, event_id, event_type, payload, cause)
  select p_session, p_head + e.n, p_life, p_now, e.size, e.id, e.type, e.payload,
    coalesce(e.cause, p_cause)::jsonb
  from unnest(p_id, p_type, p_payload, p_size, p_causes) with ordinality
    as e(id, type, payload, size, cause, n);
  if cardinality(p_target_event) > 0 then
    with added as (
      insert into a2.a2_heads (session_id, idx, life, kind, status, consumer, name)
      select p_session, p_head + t.event - p_offset, p_life,
        case when t.lane is null then 0 else 1 end,
        case
          when t.lane is null then 1
          when t.turn > 1 then 0
          when coalesce((
            select h.status = 3 or h.idx <= p_life
            from a2.a2_heads h
            where h.session_id = p_session and h.consumer = t.consumer and h.kind = 1
              and h.name = t.lane
            order by h.idx desc limit 1
          ), true) then 1
          else 0
        end,
        t.consumer, coalesce(t.lane, '')
      from (
        select u.event, u.consumer, u.lane,
          row_number() over (partition by u.consumer, u.lane order by u.event) as turn
        from unnest(p_target_event, p_target_consumer, p_target_lane) u(event, consumer, lane)
      ) t
      returning consumer, status
    )
    select array_agg(distinct a.consumer) from added a where a.status = 1 into v_live;
  end if;
  return v_live;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_store_events_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The first event after p_after that the types (null: every type) take, up to the log's head. p_after
-- is never below the clear marker, so a log of every type takes the very next one.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_next_taken_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_next_taken_1(p_session text, p_types text[], p_after bigint, p_head bigint)
returns bigint
language plpgsql as $body$
begin
  if p_after >= p_head then
    return null;
  end if;
  if p_types is null then
    return p_after + 1;
  end if;
  return (
    select min(e.idx)
    from unnest(p_types) t(type)
    cross join lateral (
      select e.idx, e.event_type from a2.a2_events e
      where e.session_id = p_session and (e.event_type, e.idx) > (t.type, p_after)
      order by e.event_type, e.idx limit 1
    ) e
    where e.event_type = t.type and t.type <> 'a2.clear'
  );
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_next_taken_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- How far a log cursor got: null when there is none.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_log_position_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_log_position_1(p_session text, p_life bigint, p_consumer text, p_log text)
returns bigint
language plpgsql stable as $body$
begin
  return coalesce(
    (
      select coalesce(h.done_through, h.idx)
      from a2.a2_heads h
      where h.session_id = p_session and h.consumer = p_consumer and h.kind = 2 and h.name = p_log
        and h.idx > p_life and h.status = 3
      order by h.idx desc limit 1
    ),
    (
      select greatest(l.start_position, p_life)
      from a2.a2_logs l
      where l.session_id = p_session and l.consumer = p_consumer and l.name = p_log
    )
  );
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_log_position_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Makes a log cursor, or gives an idle one its next head, and records its types. p_before is the
-- log's head before the batch that touches it, p_head the log's head now. Answers whether it has a
-- live head.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_touch_log_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_touch_log_1(
  p_session text, p_life bigint, p_before bigint, p_head bigint,
  p_consumer text, p_log text, p_types text[], p_backfill boolean
) returns boolean
language plpgsql as $body$
declare
  v_start bigint;
  v_types text[];
  v_idx bigint;
  v_status smallint;
  v_position bigint;
begin
  select l.start_position, l.types into v_start, v_types
  from a2.a2_logs l
  where l.session_id = p_session and l.consumer = p_consumer and l.name = p_log;
  if not found then
    v_position := case when p_backfill then p_life else p_before end;
    insert into a2.a2_logs (session_id, consumer, name, start_position, types)
    values (p_session, p_consumer, p_log, v_position, p_types);
  else
    if v_types is distinct from p_types then
      update a2.a2_logs l set types = p_types
      where l.session_id = p_session and l.consumer = p_consumer and l.name = p_log;
    end if;
    select h.idx, h.status, coalesce(h.done_through, h.idx) into v_idx, v_status, v_position
    from a2.a2_heads h
    where h.session_id = p_session and h.consumer = p_consumer and h.kind = 2 and h.name = p_log
    order by h.idx desc limit 1;
    if v_idx > p_life then
      if v_status <> 3 then
        return v_status = 1;
      end if;
    else
      v_position := greatest(v_start, p_life);
    end if;
  end if;
  v_idx := a2.a2_next_taken_1(p_session, p_types, v_position, p_head);
  if v_idx is null then
    return false;
  end if;
  insert into a2.a2_heads (session_id, idx, life, kind, status, consumer, name)
  values (p_session, v_idx, p_life, 2, 1, p_consumer, p_log);
  return true;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_touch_log_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Moves the declared logs after a batch with events of p_taken types, but for the one whose
-- completion returns them. Answers whether one of them has a live head: all are served.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_touch_logs_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_touch_logs_1(
  p_session text, p_life bigint, p_before bigint, p_head bigint, p_taken text[],
  s_consumer text[], s_log text[], s_backfill boolean[], s_types_end integer[], s_types text[],
  p_but_consumer text, p_but_log text
) returns boolean
language plpgsql as $body$
declare
  v_types text[];
  v_live boolean := false;
begin
  for v_k in 1 .. coalesce(cardinality(s_log), 0) loop
    continue when s_log[v_k] is null or (s_log[v_k] = p_but_log and s_consumer[v_k] = p_but_consumer);
    v_types := a2.a2_slice_1(s_types_end, s_types, v_k);
    if v_types is null or v_types && p_taken then
      v_live := a2.a2_touch_log_1(p_session, p_life, p_before, p_head,
        s_consumer[v_k], s_log[v_k], v_types, s_backfill[v_k]) or v_live;
    end if;
  end loop;
  return v_live;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_touch_logs_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The types of entry p_k of a served list; null (every type) when it names none.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_slice_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_slice_1(p_end integer[], p_types text[], p_k integer) returns text[]
language plpgsql immutable as $body$
declare
  v_first integer := case p_k when 1 then 1 else p_end[p_k - 1] + 1 end;
begin
  return case when v_first <= p_end[p_k] then p_types[v_first : p_end[p_k]] end;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_slice_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The types that a log takes: those of the served list that declares it, else the recorded ones.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_log_types_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_log_types_1(
  p_session text, p_consumer text, p_log text,
  s_consumer text[], s_log text[], s_types_end integer[], s_types text[]
) returns text[]
language plpgsql as $body$
begin
  for v_k in 1 .. coalesce(cardinality(s_log), 0) loop
    if s_log[v_k] = p_log and s_consumer[v_k] = p_consumer then
      return a2.a2_slice_1(s_types_end, s_types, v_k);
    end if;
  end loop;
  return (
    select l.types from a2.a2_logs l
    where l.session_id = p_session and l.consumer = p_consumer and l.name = p_log
  );
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_log_types_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Whether a pin names a snapshot.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_is_pinned_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_is_pinned_1(p_session text, p_reducer text, p_index bigint) returns boolean
language plpgsql as $body$
begin
  return coalesce((
    select p.up_to_index = p_index from a2.a2_snapshot_pins p
    where p.session_id = p_session and p.reducer_name = p_reducer and p.up_to_index >= p_index
      and p.up_to_index <= p_index
    order by p.up_to_index limit 1
  ), false);
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_is_pinned_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Removes a head's pins, and the snapshots that only they kept (never the latest).
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_release_pins_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_release_pins_1(
  p_session text, p_consumer text, p_kind integer, p_name text, p_idx bigint
) returns boolean
language plpgsql as $body$
declare
  v_pin record;
begin
  for v_pin in
    select p.ctid as tid, p.reducer_name, p.up_to_index
    from a2.a2_snapshot_pins p
    where p.session_id = p_session and p.consumer = p_consumer and p.kind = p_kind
      and p.name = p_name and p.idx >= p_idx and p.idx <= p_idx
    order by p.idx
  loop
    delete from a2.a2_snapshot_pins p where p.ctid = v_pin.tid and p.session_id = p_session;
    if not a2.a2_is_pinned_1(p_session, v_pin.reducer_name, v_pin.up_to_index) then
      delete from a2.a2_snapshots s
      where s.session_id = p_session and s.reducer_name = v_pin.reducer_name
        and s.up_to_index = v_pin.up_to_index
        and s.up_to_index < (
          select l.up_to_index from a2.a2_snapshots l
          where l.session_id = p_session and l.reducer_name = v_pin.reducer_name
          order by l.up_to_index desc limit 1
        );
    end if;
  end loop;
  return true;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_release_pins_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Finishes a live or dead head: it is recorded as done by p_attempt (null: skipped), its pins are
-- released, and a lane's next row becomes live; answers whether one did. A log moves afterwards, by
-- a2_advance_1. p_tid is where the head's row is, p_next where the lane's next one, p_after the log's
-- head before the returned events.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_finish_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_finish_1(
  p_session text, p_tid tid, p_next tid, p_consumer text, p_kind integer, p_name text, p_idx bigint,
  p_pinned boolean, p_attempt bigint, p_now bigint, p_after bigint, p_returned integer,
  p_through bigint
) returns boolean
language plpgsql as $body$
begin
  update a2.a2_heads h
  set status = 3, held_until = 0, claim_holder = null, failed_at = null, done_at = p_now,
    done_attempt = p_attempt, done_through = p_through, returned_after = p_after,
    returned = p_returned
  where h.ctid = p_tid and h.session_id = p_session;
  if p_pinned then
    perform a2.a2_release_pins_1(p_session, p_consumer, p_kind, p_name, p_idx);
  end if;
  if p_next is null then
    return false;
  end if;
  update a2.a2_heads h set status = 1 where h.ctid = p_next and h.session_id = p_session;
  return true;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_finish_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Moves a log past p_position, to the first event after it that it takes; answers whether it has a
-- head now. Its types are recorded when they are others than before.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_advance_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_advance_1(
  p_session text, p_life bigint, p_head bigint, p_consumer text, p_log text, p_position bigint,
  s_consumer text[], s_log text[], s_types_end integer[], s_types text[]
) returns boolean
language plpgsql as $body$
declare
  v_types text[];
  v_idx bigint;
begin
  v_types := a2.a2_log_types_1(p_session, p_consumer, p_log, s_consumer, s_log, s_types_end, s_types);
  if s_log is not null then
    update a2.a2_logs l set types = v_types
    where l.session_id = p_session and l.consumer = p_consumer and l.name = p_log
      and l.types is distinct from v_types;
  end if;
  v_idx := a2.a2_next_taken_1(p_session, v_types, p_position, p_head);
  if v_idx is null then
    return false;
  end if;
  insert into a2.a2_heads (session_id, idx, life, kind, status, consumer, name)
  values (p_session, v_idx, p_life, 2, 1, p_consumer, p_log);
  return true;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_advance_1');
  end if;
end
$a2$;
--> statement-breakpoint
