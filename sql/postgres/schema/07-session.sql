-- What the Postgres store does with a session as a whole or with one cursor of it: redrive, wake,
-- clear, snapshots.

-- Where a session's log stands: its latest marker and its head.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_log_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_log_1(p_session text, out life bigint, out head bigint)
language plpgsql as $body$
begin
  select e.life, e.idx into life, head
  from a2.a2_events e where e.session_id = p_session order by e.idx desc limit 1;
  if not found then
    life := 0;
    head := 0;
  end if;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_log_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Redrives one dead letter: p_skip takes it as done, else it is live again. s_*: what the caller
-- serves. One row of part 0: redriven or not_dead, with pending.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_redrive_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_redrive_1(
  p_now bigint, p_session text, p_consumer text, p_kind integer, p_name text, p_idx bigint,
  p_skip boolean, s_consumer text[], s_log text[], s_types_end integer[], s_types text[]
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  v_locked boolean := a2.a2_lock_1(p_session, false);
  v_now bigint := coalesce(p_now, a2.a2_now_1());
  r a2.a2_answer_1;
  v_life bigint;
  v_tid tid;
  v_next tid;
  v_status integer;
begin
  select l.life, l.head into v_life, r.head from a2.a2_log_1(p_session) l;
  r.op := 1;
  r.part := 0;
  r.status := 'not_dead';
  r.clear_index := v_life;
  r.at := v_now;
  select h.ctid, h.status into v_tid, v_status
  from a2.a2_heads h
  where h.session_id = p_session and h.consumer = p_consumer and h.kind = p_kind
    and h.name = p_name and h.idx = p_idx;
  if v_status = 2 and p_idx > v_life then
    r.status := 'redriven';
    if p_skip then
      if p_kind = 1 then
        v_next := (
          select n.ctid from a2.a2_heads n
          where n.session_id = p_session and n.consumer = p_consumer and n.kind = 1
            and n.name = p_name and n.idx > p_idx
          order by n.idx limit 1
        );
      end if;
      perform a2.a2_finish_1(p_session, v_tid, v_next, p_consumer, p_kind, p_name, p_idx, false,
        null, v_now, r.head, 0, null);
      if p_kind = 2 then
        perform a2.a2_advance_1(p_session, v_life, r.head, p_consumer, p_name, p_idx,
          s_consumer, s_log, s_types_end, s_types);
      end if;
    else
      update a2.a2_heads h set status = 1, failed_at = null, failure_count = 0
      where h.ctid = v_tid and h.session_id = p_session;
    end if;
  end if;
  r.pending := a2.a2_has_live_1(p_session, v_life, s_consumer);
  return next r;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_redrive_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Brings one log cursor up to date; p_types: what it takes (null: every type). One row of part 0: n
-- its position, idx its head (null: idle) with the dispatch state.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_wake_log_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_wake_log_1(
  p_session text, p_consumer text, p_log text, p_types text[], p_backfill boolean
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  v_locked boolean := a2.a2_lock_1(p_session, false);
  r a2.a2_answer_1;
begin
  select l.life, l.head into r.clear_index, r.head from a2.a2_log_1(p_session) l;
  perform a2.a2_touch_log_1(p_session, r.clear_index, r.head, r.head, p_consumer, p_log, p_types,
    p_backfill);
  r := a2.a2_cursor_1(r, p_session, p_consumer, 2, p_log, a2.a2_log_head_1(
    p_session, r.clear_index, p_consumer, p_log));
  r.op := 1;
  r.part := 0;
  r.status := 'woken';
  r.n := a2.a2_log_position_1(p_session, r.clear_index, p_consumer, p_log);
  return next r;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_wake_log_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- A log cursor's head, live or dead; null when it is idle.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_log_head_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_log_head_1(p_session text, p_life bigint, p_consumer text, p_log text)
returns bigint
language plpgsql stable as $body$
declare
  v_idx bigint;
  v_status integer;
begin
  select h.idx, h.status into v_idx, v_status
  from a2.a2_heads h
  where h.session_id = p_session and h.consumer = p_consumer and h.kind = 2 and h.name = p_log
  order by h.idx desc limit 1;
  return case when v_idx > p_life and v_status <> 3 then v_idx end;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_log_head_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Starts a new lifetime: p_id the marker's id, p_if_last the head that must be, p_cause the attempt
-- that must be current. One row of part 0: cleared, already (nothing written), not_last,
-- superseded_attempt, full.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_clear_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_clear_1(
  p_now bigint, p_session text, p_id text, p_if_last bigint, p_cause text
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  v_locked boolean := a2.a2_lock_1(p_session, false);
  r a2.a2_answer_1;
begin
  r.op := 1;
  r.part := 0;
  r.at := coalesce(p_now, a2.a2_now_1());
  select l.life, l.head into r.clear_index, r.head from a2.a2_log_1(p_session) l;
  if r.clear_index > 0 and (p_if_last + 1 = r.clear_index
    or a2.a2_owner_1(p_session, r.clear_index, p_id) = r.clear_index)
  then
    r.status := 'already';
  elsif p_cause is not null and not a2.a2_is_current_1(p_session, r.clear_index, p_cause::json) then
    r.status := 'superseded_attempt';
  elsif p_if_last <> r.head then
    r.status := 'not_last';
  elsif r.head = r.clear_index then
    r.status := 'already';
  elsif r.head + 1 > 9007199254740991 then
    r.status := 'full';
  else
    r.status := 'cleared';
    r.head := r.head + 1;
    r.clear_index := r.head;
    insert into a2.a2_events
      (session_id, idx, life, created_at, size, event_id, event_type, payload)
    values (p_session, r.head, r.head, r.at, 4, p_id, 'a2.clear', 'null');
    insert into a2.a2_clears (session_id, clear_index) values (p_session, r.head)
    on conflict (session_id) do update set clear_index = excluded.clear_index;
  end if;
  return next r;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_clear_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Keeps snapshots of one reducer, p_index ascending. p_pin_*: the heads that keep them, p_pin_write
-- being the place in p_index. One row: done (stored: the indexes that are kept now, latest) or
-- above_head (n: the place of the write that lies above the log's head).
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_put_snapshots_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_put_snapshots_1(
  p_session text, p_reducer text, p_index bigint[], p_state json[],
  p_pin_write integer[], p_pin_consumer text[], p_pin_kind integer[], p_pin_name text[],
  p_pin_idx bigint[],
  out status text, out n bigint, out stored bigint[], out latest bigint, out head bigint
)
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  v_locked boolean := a2.a2_lock_1(p_session, false);
  v_life bigint;
  v_pin integer := 1;
  v_pins integer := coalesce(cardinality(p_pin_write), 0);
  v_index bigint;
  v_tid tid;
  v_status integer;
  v_pinned boolean;
begin
  select l.life, l.head into v_life, head from a2.a2_log_1(p_session) l;
  for v_write in 1 .. cardinality(p_index) loop
    if p_index[v_write] > head then
      status := 'above_head';
      n := v_write;
      return;
    end if;
  end loop;
  status := 'done';
  stored := '{}';
  latest := (
    select s.up_to_index from a2.a2_snapshots s
    where s.session_id = p_session and s.reducer_name = p_reducer and s.up_to_index >= v_life
    order by s.up_to_index desc limit 1
  );
  for v_write in 1 .. cardinality(p_index) loop
    v_index := p_index[v_write];
    while v_pin <= v_pins and p_pin_write[v_pin] <= v_write loop
      if v_index >= v_life and p_pin_idx[v_pin] > v_life then
        select h.ctid, h.status, h.pinned into v_tid, v_status, v_pinned
        from a2.a2_heads h
        where h.session_id = p_session and h.consumer = p_pin_consumer[v_pin]
          and h.kind = p_pin_kind[v_pin] and h.name = p_pin_name[v_pin]
          and h.idx = p_pin_idx[v_pin];
        if v_status = 1 then
          insert into a2.a2_snapshot_pins
            (session_id, idx, up_to_index, kind, consumer, name, reducer_name)
          values (p_session, p_pin_idx[v_pin], v_index, p_pin_kind[v_pin], p_pin_consumer[v_pin],
            p_pin_name[v_pin], p_reducer)
          on conflict do nothing;
          if not v_pinned then
            update a2.a2_heads h set pinned = true
            where h.ctid = v_tid and h.session_id = p_session;
          end if;
        end if;
      end if;
      v_pin := v_pin + 1;
    end loop;
    continue when v_index < v_life;
    continue when v_index < latest
      and not a2.a2_is_pinned_1(p_session, p_reducer, v_index);
    insert into a2.a2_snapshots (session_id, reducer_name, up_to_index, state)
    values (p_session, p_reducer, v_index, p_state[v_write])
    on conflict (session_id, reducer_name, up_to_index) do update set state = excluded.state;
    stored := stored || v_index;
    if v_index > latest and not a2.a2_is_pinned_1(p_session, p_reducer, latest) then
      delete from a2.a2_snapshots s
      where s.session_id = p_session and s.reducer_name = p_reducer and s.up_to_index = latest;
      stored := array_remove(stored, latest);
    end if;
    latest := greatest(latest, v_index);
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_put_snapshots_1');
  end if;
end
$a2$;
--> statement-breakpoint
