-- Timers and presence in the Postgres store.

-- Sets a timer that appends its event after p_after milliseconds; p_origin: no clear may lie above it.
-- p_target_*: the event's targets (no lane: its own cursor). One row of part 0: scheduled (at: when it
-- is due) or session_cleared.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_schedule_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_schedule_1(
  p_now bigint, p_session text, p_key text, p_after bigint, p_origin bigint,
  p_id text, p_type text, p_payload json, p_target_consumer text[], p_target_lane text[]
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  v_locked boolean := a2.a2_lock_1(p_session, false);
  r a2.a2_answer_1;
begin
  select l.life, l.head into r.clear_index, r.head from a2.a2_log_1(p_session) l;
  r.op := 1;
  r.part := 0;
  if p_origin < r.clear_index then
    r.status := 'session_cleared';
  else
    r.status := 'scheduled';
    r.at := a2.a2_after_1(coalesce(p_now, a2.a2_now_1()), p_after);
    insert into a2.a2_timers (session_id, timer_key, due_at, origin_index, size, event_id, event_type,
      target_consumer, target_lane, payload)
    values (p_session, p_key, r.at, p_origin, octet_length(p_payload::text), p_id, p_type,
      coalesce(p_target_consumer, '{}'), coalesce(p_target_lane, '{}'), p_payload)
    on conflict (session_id, timer_key) do update
    set due_at = excluded.due_at, origin_index = excluded.origin_index, size = excluded.size,
      event_id = excluded.event_id, event_type = excluded.event_type,
      target_consumer = excluded.target_consumer, target_lane = excluded.target_lane,
      payload = excluded.payload;
  end if;
  return next r;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_schedule_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Removes a timer; answers whether there was one in this lifetime.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_unschedule_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_unschedule_1(p_session text, p_key text) returns boolean
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  v_locked boolean := a2.a2_lock_1(p_session, false);
  v_life bigint;
  v_timer record;
begin
  select l.life into v_life from a2.a2_log_1(p_session) l;
  select t.ctid as tid, t.timer_key, t.origin_index into v_timer
  from a2.a2_timers t
  where t.session_id = p_session and t.timer_key >= p_key and t.timer_key <= p_key
  order by t.timer_key limit 1;
  if v_timer.timer_key = p_key and coalesce(v_timer.origin_index >= v_life, true) then
    delete from a2.a2_timers t where t.ctid = v_timer.tid and t.session_id = p_session;
    return true;
  end if;
  return false;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_unschedule_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Appends the events of at most p_limit due timers, in order of due time and key. s_*: what the caller
-- serves. A row of part 0: fired (n events, the last at head; they follow as part 1) or full. What
-- does not fit a batch waits for the next call.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_fire_timers_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_fire_timers_1(
  p_now bigint, p_session text, p_limit integer,
  s_consumer text[], s_log text[], s_backfill boolean[], s_types_end integer[], s_types text[]
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  v_locked boolean := a2.a2_lock_1(p_session, false);
  v_now bigint := coalesce(p_now, a2.a2_now_1());
  r a2.a2_answer_1;
  v_timer record;
  v_life bigint;
  v_head bigint;
  v_bytes bigint := 0;
  v_targets integer := 0;
  v_fired tid[] := '{}';
  v_tid tid;
  v_id text[] := '{}';
  v_type text[] := '{}';
  v_payload json[] := '{}';
  v_size integer[] := '{}';
  v_target_event integer[] := '{}';
  v_target_consumer text[] := '{}';
  v_target_lane text[] := '{}';
  v_live text[];
begin
  select l.life, l.head into v_life, v_head from a2.a2_log_1(p_session) l;
  for v_timer in
    select t.ctid, t.*, a2.a2_owner_1(p_session, v_life, t.event_id) is not null as owned
    from a2.a2_timers t
    where t.session_id = p_session and t.due_at <= v_now
      and (t.origin_index is null or t.origin_index >= v_life)
    order by t.due_at, t.timer_key
    limit p_limit
  loop
    v_bytes := v_bytes + v_timer.size;
    v_targets := v_targets + cardinality(v_timer.target_consumer);
    exit when cardinality(v_fired) > 0 and (v_bytes > 16777216 or v_targets > 20000);
    v_fired := v_fired || v_timer.ctid;
    continue when v_timer.owned or v_timer.event_id = any (v_id);
    v_id := v_id || v_timer.event_id;
    v_type := v_type || v_timer.event_type;
    v_payload := array_append(v_payload, v_timer.payload);
    v_size := v_size || v_timer.size;
    v_target_event := v_target_event
      || array_fill(cardinality(v_id), array[cardinality(v_timer.target_consumer)]);
    v_target_consumer := v_target_consumer || v_timer.target_consumer;
    v_target_lane := v_target_lane || v_timer.target_lane;
  end loop;
  r.op := 1;
  r.part := 0;
  r.clear_index := v_life;
  r.head := v_head;
  r.at := v_now;
  r.n := cardinality(v_id);
  if v_head + r.n > 9007199254740991 then
    r.status := 'full';
    return next r;
    return;
  end if;
  r.status := 'fired';
  foreach v_tid in array v_fired loop
    delete from a2.a2_timers t where t.ctid = v_tid and t.session_id = p_session;
  end loop;
  if r.n > 0 then
    r.head := v_head + r.n;
    v_live := a2.a2_store_events_1(p_session, v_life, v_head, v_now, v_id, v_type, v_payload, v_size,
      null, null, v_target_event, 0, v_target_consumer, v_target_lane);
    if s_log is not null then
      perform a2.a2_touch_logs_1(p_session, v_life, v_head, r.head, v_type,
        s_consumer, s_log, s_backfill, s_types_end, s_types, null, null);
    end if;
  end if;
  r.pending := a2.a2_has_live_1(p_session, v_life, s_consumer);
  return next r;
  if r.n > 0 then
    return query select * from a2.a2_events_of_1(1, p_session, v_life, v_id);
  end if;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_fire_timers_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Sets and removes a participant's ephemeral fields: p_value null removes, p_seen is the log index
-- that it has seen, the fields go after p_ttl milliseconds without a write. p_sweep: null, or the
-- namespace after which long expired rows are deleted (the answer's `sweep`, '' at first).
--
-- One row: when, when the fields go, whether a field that did not change goes sooner than before, the
-- fields that changed, those that were removed, where the sweep goes on.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_set_presence_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_set_presence_1(
  p_now bigint, p_namespace text, p_participant text, p_seen bigint, p_ttl bigint,
  p_field text[], p_value json[], p_sweep text,
  out at bigint, out expires_at bigint, out sooner boolean, out changed text[], out removed text[],
  out sweep text
)
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  -- Not a session's lock: namespaces are others.
  v_locked boolean := pg_advisory_xact_lock(
    hashtextextended(p_namespace, hashtextextended('presence', a2.a2_seed))) is not null;
  f record;
begin
  at := coalesce(p_now, a2.a2_now_1());
  expires_at := a2.a2_after_1(at, p_ttl);
  sooner := false;
  changed := '{}';
  removed := '{}';
  for f in
    select u.field, u.value, p.value::text as old_value, p.seen as old_seen,
      p.expires_at as old_expires_at
    from unnest(p_field, p_value) u(field, value)
    left join lateral (
      select * from a2.a2_presence p
      where p.namespace = p_namespace and p.participant = p_participant and p.field = u.field
      limit 1
    ) p on true
    order by u.field collate "C"
  loop
    if f.value is null then
      if f.old_expires_at is not null then
        delete from a2.a2_presence p
        where p.namespace = p_namespace and p.participant = p_participant and p.field = f.field;
        if f.old_expires_at > at then
          removed := removed || f.field;
        end if;
      end if;
      continue;
    end if;
    if f.old_expires_at > at and f.old_value = f.value::text
      and f.old_seen is not distinct from p_seen
    then
      sooner := sooner or a2_set_presence_1.expires_at < f.old_expires_at;
    else
      changed := changed || f.field;
    end if;
    insert into a2.a2_presence as p
      (namespace, participant, field, value, seen, updated_at, expires_at)
    values (p_namespace, p_participant, f.field, f.value, p_seen, at, a2_set_presence_1.expires_at)
    on conflict (namespace, participant, field) do update
    set value = excluded.value, seen = excluded.seen, updated_at = excluded.updated_at,
      expires_at = excluded.expires_at;
  end loop;
  perform a2.a2_expire_presence_1(p_namespace, at);
  if p_sweep is not null then
    sweep := coalesce((
      select p.namespace from a2.a2_presence p
      where p.namespace > p_sweep
      order by p.namespace, p.participant limit 1
    ), '');
    if sweep <> '' then
      perform a2.a2_expire_presence_1(sweep, at - 86400000);
    end if;
  end if;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_set_presence_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Deletes some of the rows of a namespace that have expired. Others may be writing to it: what they
-- have locked is left to them.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_expire_presence_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_expire_presence_1(p_namespace text, p_now bigint) returns void
language plpgsql as $body$
declare
  v_tid tid;
begin
  for v_tid in
    select p.ctid from a2.a2_presence p
    where p.namespace = p_namespace and p.expires_at <= p_now
    order by p.expires_at limit 64
    for update skip locked
  loop
    delete from a2.a2_presence p where p.namespace = p_namespace and p.ctid = v_tid;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_expire_presence_1');
  end if;
end
$a2$;
--> statement-breakpoint
