-- Claiming in the Postgres store.

-- Claims heads of one session under its lock: the claim of a2_claim_available_1, and what follows a
-- completion or a failure. p_consumer: the served consumers (null: all), p_budget their own budgets;
-- p_log, p_types_end, p_types what they declare. x_*: cursors that are left out (x_idx is 0 but for an
-- event cursor).
--
-- Answers a row of part 2: claimed (the heads follow as part 3, each with its run as part 4), busy
-- (n: milliseconds until it is worth to ask again) or settled. p_outcome tells the operation's number,
-- head, marker and time; when it is of part 0 it is answered first, and where `pending` is left open it
-- is what the claim finds. An array: a function that returns a set would cost its caller a plan more.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_claim_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_claim_1(
  p_outcome a2.a2_answer_1, p_session text, p_holder text, p_ttl bigint, p_limit integer,
  p_max_failures bigint, p_through bigint, p_run integer,
  x_consumer text[], x_kind integer[], x_name text[], x_idx bigint[],
  p_consumer text[], p_budget bigint[], p_log text[], p_types_end integer[], p_types text[]
) returns a2.a2_answer_1[]
language plpgsql as $body$
declare
  c_bytes constant bigint := 16777216;
  r a2.a2_answer_1;
  v_answer a2.a2_answer_1[];
  v_claimed a2.a2_answer_1;
  v_idx bigint;
  f record;
  v_heads refcursor;
  v_life bigint := p_outcome.clear_index;
  v_now bigint := p_outcome.at;
  v_until bigint := a2.a2_after_1(p_outcome.at, p_ttl);
  v_all boolean := coalesce(cardinality(x_consumer), 0) = 0;
  v_through bigint := coalesce(p_through, 9007199254740991);
  v_consumers text[] := coalesce(p_consumer, a2.a2_live_consumers_1(p_session, v_life));
  v_bytes bigint := 0;
  v_soonest bigint;
begin
  if p_limit = 1 and v_all and cardinality(v_consumers) = 1 then
    -- What workers do all the time: the first free head of one consumer, unless there is a due one.
    update a2.a2_heads h
    set held_until = v_until, claim_holder = p_holder, attempt_count = h.attempt_count + 1,
      first_claimed_at = coalesce(h.first_claimed_at, v_now), last_claimed_at = v_now
    where h.session_id = p_session and h.ctid = (
        select n.ctid from a2.a2_heads n
        where n.session_id = p_session and n.life = v_life and n.status = 1
          and n.consumer = v_consumers[1] and n.held_until = 0 and n.idx <= v_through
        order by n.held_until, n.idx, n.kind, n.name limit 1
      )
      and (
        select true from a2.a2_heads d
        where d.session_id = p_session and d.life = v_life and d.status = 1
          and d.consumer = v_consumers[1] and d.held_until > 0 and d.held_until <= v_now
        order by d.held_until, d.idx limit 1
      ) is null
    returning h.kind, h.name, h.idx, h.attempt_count, h.first_claimed_at, h.failure_count,
      h.last_failed_at, h.last_failed_attempt, h.last_error
    into r.kind, r.name, r.idx, r.attempt_count, r.first_claimed_at, r.failure_count,
      r.last_failed_at, r.last_failed_attempt, r.last_error;
    if found then
      r.op := p_outcome.op;
      r.part := 3;
      r.consumer := v_consumers[1];
      r.last_claimed_at := v_now;
      r.claim_holder := p_holder;
      r.claim_expires_at := v_until;
      select e.idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at,
        coalesce(e.size, octet_length(e.payload::text))
      into v_idx, r.event_id, r.event_type, r.payload, r.cause, r.created_at, v_bytes
      from a2.a2_events e
      where e.session_id = p_session and e.idx >= r.idx and e.idx <= r.idx
      order by e.idx limit 1;
      if v_idx is distinct from r.idx then
        perform a2.a2_corrupt_1(p_session, r.idx, 'the event is missing from the log');
      end if;
      v_claimed.op := p_outcome.op;
      v_claimed.part := 2;
      v_claimed.status := 'claimed';
      v_claimed.head := p_outcome.head;
      v_claimed.clear_index := v_life;
      v_claimed.at := v_now;
      if p_outcome.part = 0 then
        p_outcome.pending := coalesce(p_outcome.pending, true);
        v_answer := array[p_outcome, v_claimed, r];
      else
        v_answer := array[v_claimed, r];
      end if;
      if p_run > 1 and r.kind = 2 and v_bytes <= c_bytes then
        v_answer := v_answer || a2.a2_run_1(p_outcome.op, p_session, r.idx,
          least(v_through, p_outcome.head), p_run - 1, c_bytes - v_bytes,
          a2.a2_log_types_1(p_session, r.consumer, r.name, p_consumer, p_log, p_types_end, p_types));
      end if;
      return v_answer;
    end if;
  end if;
  if v_all and cardinality(v_consumers) = 1 and (
    select true from a2.a2_heads h
    where h.session_id = p_session and h.life = v_life and h.status = 1
      and h.consumer = v_consumers[1] and h.held_until > 0 and h.held_until <= v_now
    order by h.held_until, h.idx limit 1
  ) is null then
    -- One consumer without due heads: the free ones are in order already.
    open v_heads for
      select h.ctid as tid, v_consumers[1] as consumer, h.kind, h.name, h.idx,
        null::text as claim_holder, 0 as failure_count, false as pinned,
        e.idx as event_idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at, e.size
      from a2.a2_heads h
      left join lateral (
        select e.idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at, e.size
        from a2.a2_events e
        where e.session_id = p_session and e.idx >= h.idx and e.idx <= h.idx
        order by e.idx limit 1
      ) e on true
      where h.session_id = p_session and h.life = v_life and h.status = 1
        and h.consumer = v_consumers[1] and h.held_until = 0 and h.idx <= v_through
      order by h.held_until, h.idx, h.kind, h.name
      limit p_limit;
  else
    -- Free heads and due ones are two ranges of one index.
    open v_heads for
      select h.*,
        e.idx as event_idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at, e.size
      from (
        select h.*
        from unnest(v_consumers) c(consumer)
        cross join (values (0::bigint, 0::bigint, p_limit), (1, v_now, 256)) w(low, high, cap)
        cross join lateral (
          select h.ctid as tid, h.consumer, h.kind, h.name, h.idx, h.claim_holder, h.failure_count,
            h.pinned
          from a2.a2_heads h
          where h.session_id = p_session and h.life = v_life and h.status = 1
            and h.consumer = c.consumer and h.held_until >= w.low and h.held_until <= w.high
            and h.idx <= v_through
            and (v_all or
              (h.consumer, h.kind::integer, h.name, case h.kind when 0 then h.idx else 0 end) not in (
                select x.consumer, x.kind, x.name, x.idx
                from unnest(x_consumer, x_kind, x_name, x_idx) x(consumer, kind, name, idx)
              ))
          order by h.held_until, h.idx, h.kind, h.name
          limit w.cap
        ) h
        order by h.idx, h.consumer, h.kind, h.name
        limit p_limit
      ) h
      left join lateral (
        select e.idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at, e.size
        from a2.a2_events e
        where e.session_id = p_session and e.idx >= h.idx and e.idx <= h.idx
        order by e.idx limit 1
      ) e on true;
  end if;
  loop
    fetch v_heads into f;
    exit when not found;
    if f.event_idx is distinct from f.idx then
      perform a2.a2_corrupt_1(p_session, f.idx, 'the event is missing from the log');
    end if;
    r.op := p_outcome.op;
    if v_answer is null then
      if p_outcome.part = 0 then
        p_outcome.pending := coalesce(p_outcome.pending, true);
        v_answer := array[p_outcome];
      end if;
      r.part := 2;
      r.status := 'claimed';
      r.head := p_outcome.head;
      r.clear_index := v_life;
      r.at := v_now;
      v_answer := v_answer || r;
      r := null;
      r.op := p_outcome.op;
      r.part := 3;
    end if;
    r.consumer := f.consumer;
    r.kind := f.kind;
    r.name := f.name;
    r.idx := f.idx;
    r.event_id := f.event_id;
    r.event_type := f.event_type;
    r.payload := f.payload;
    r.cause := f.cause;
    r.created_at := f.created_at;
    r.failed_at := null;
    if f.claim_holder is null then
      update a2.a2_heads h
      set held_until = v_until, claim_holder = p_holder, attempt_count = h.attempt_count + 1,
        first_claimed_at = coalesce(h.first_claimed_at, v_now), last_claimed_at = v_now
      where h.ctid = f.tid and h.session_id = p_session
      returning h.attempt_count, h.first_claimed_at, h.failure_count, h.last_failed_at,
        h.last_failed_attempt, h.last_error
      into r.attempt_count, r.first_claimed_at, r.failure_count, r.last_failed_at,
        r.last_failed_attempt, r.last_error;
      r.last_claimed_at := v_now;
      r.claim_holder := p_holder;
      r.claim_expires_at := v_until;
    else
      -- The lease lapsed: its worker is taken for dead.
      if f.failure_count + 1 >= coalesce(
        p_budget[array_position(p_consumer, f.consumer)], p_max_failures)
      then
        r.failed_at := v_now;
      end if;
      update a2.a2_heads h
      set status = case when r.failed_at is null then 1 else 2 end,
        held_until = case when r.failed_at is null then v_until else 0 end,
        claim_holder = case when r.failed_at is null then p_holder end,
        attempt_count = h.attempt_count + 1,
        last_claimed_at = case when r.failed_at is null then v_now else h.last_claimed_at end,
        failure_count = h.failure_count + 1, last_failed_at = v_now,
        last_failed_attempt = h.attempt_count, last_error = 'lease expired', failed_at = r.failed_at
      where h.ctid = f.tid and h.session_id = p_session
      returning h.attempt_count, h.first_claimed_at, h.last_claimed_at, h.claim_holder,
        nullif(h.held_until, 0), h.failure_count, h.last_failed_at, h.last_failed_attempt, h.last_error
      into r.attempt_count, r.first_claimed_at, r.last_claimed_at, r.claim_holder, r.claim_expires_at,
        r.failure_count, r.last_failed_at, r.last_failed_attempt, r.last_error;
      if r.failed_at is not null and f.pinned then
        perform a2.a2_release_pins_1(p_session, f.consumer, f.kind, f.name, f.idx);
      end if;
    end if;
    v_answer := v_answer || r;
    v_bytes := v_bytes + coalesce(f.size, octet_length(f.payload::text));
    if p_run > 1 and f.kind = 2 and r.failed_at is null and v_bytes <= c_bytes then
      v_answer := v_answer || a2.a2_run_1(p_outcome.op, p_session, f.idx,
        least(v_through, p_outcome.head), p_run - 1, c_bytes - v_bytes,
        a2.a2_log_types_1(p_session, f.consumer, f.name, p_consumer, p_log, p_types_end, p_types));
      -- The run's size; of the head itself when it has none.
      v_bytes := v_bytes + coalesce(v_answer[cardinality(v_answer)].n, 0);
    end if;
    exit when v_bytes > c_bytes;
  end loop;
  close v_heads;
  if v_answer is not null then
    return v_answer;
  end if;
  select min(h.held_until) into v_soonest
  from unnest(v_consumers) c(consumer)
  cross join lateral (
    select h.held_until
    from a2.a2_heads h
    where h.session_id = p_session and h.life = v_life and h.status = 1
      and h.consumer = c.consumer and h.idx <= v_through
      and (v_all or
        (h.consumer, h.kind::integer, h.name, case h.kind when 0 then h.idx else 0 end) not in (
          select x.consumer, x.kind, x.name, x.idx
          from unnest(x_consumer, x_kind, x_name, x_idx) x(consumer, kind, name, idx)
        ))
    order by h.held_until, h.idx, h.kind, h.name
    limit 1
  ) h;
  if p_outcome.part = 0 then
    p_outcome.pending := coalesce(p_outcome.pending, v_soonest is not null);
    v_answer := array[p_outcome];
  end if;
  r.op := p_outcome.op;
  r.part := 2;
  r.head := p_outcome.head;
  r.clear_index := v_life;
  r.at := v_now;
  if v_soonest is null then
    r.status := 'settled';
  else
    r.status := 'busy';
    r.n := greatest(v_soonest - v_now, 1);
  end if;
  return v_answer || r;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_claim_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The consumers that have live heads.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_live_consumers_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_live_consumers_1(p_session text, p_life bigint) returns text[]
language plpgsql stable as $body$
declare
  v_found text[] := '{}';
  v_consumer text;
begin
  loop
    select h.consumer into v_consumer
    from a2.a2_heads h
    where h.session_id = p_session and h.life = p_life and h.status = 1
      and h.consumer > coalesce(v_consumer, '')
    order by h.consumer, h.held_until, h.idx limit 1;
    exit when not found;
    v_found := v_found || v_consumer;
  end loop;
  return v_found;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_live_consumers_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The events after a claimed log head that its cursor takes (p_types null: every one), up to
-- p_through, at most p_limit, ending with the one by which p_bytes of payload are passed: rows of part
-- 4, n being the bytes up to there.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_run_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_run_1(
  p_op integer, p_session text, p_after bigint, p_through bigint, p_limit integer, p_bytes bigint,
  p_types text[]
) returns a2.a2_answer_1[]
language plpgsql as $body$
declare
  r a2.a2_answer_1;
  v_answer a2.a2_answer_1[] := '{}';
  v_bytes bigint := 0;
  v_before bigint := p_after;
begin
  r.op := p_op;
  r.part := 4;
  if p_types is null then
    for r.idx, r.event_id, r.event_type, r.payload, r.cause, r.created_at, r.n in
      select e.idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at,
        coalesce(e.size, octet_length(e.payload::text))
      from a2.a2_events e
      where e.session_id = p_session and e.idx > p_after and e.idx <= p_through
      order by e.idx limit p_limit
    loop
      v_before := v_before + 1;
      if r.idx <> v_before then
        perform a2.a2_corrupt_1(p_session, v_before, 'the event is missing from the log');
      end if;
      v_bytes := v_bytes + r.n;
      r.n := v_bytes;
      v_answer := v_answer || r;
      exit when v_bytes > p_bytes;
    end loop;
    return v_answer;
  end if;
  for r.idx, r.event_id, r.event_type, r.payload, r.cause, r.created_at, r.n in
    select e.idx, e.event_id, e.event_type, e.payload, e.cause, e.created_at,
      coalesce(e.size, octet_length(e.payload::text))
    from (
      select t.idx
      from unnest(p_types) w(type)
      cross join lateral (
        select t.idx from a2.a2_events t
        where t.session_id = p_session and (t.event_type, t.idx) > (w.type, p_after)
          and t.event_type <= w.type and t.idx <= p_through
        order by t.event_type, t.idx limit p_limit
      ) t
      where w.type <> 'a2.clear'
      order by t.idx limit p_limit
    ) t
    cross join lateral (
      select * from a2.a2_events e
      where e.session_id = p_session and e.idx >= t.idx and e.idx <= t.idx
      order by e.idx limit 1
    ) e
  loop
    v_bytes := v_bytes + r.n;
    r.n := v_bytes;
    v_answer := v_answer || r;
    exit when v_bytes > p_bytes;
  end loop;
  return v_answer;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_run_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Claims heads in sessions; one operation for each of p_session.
--
-- p_try: locks are tried, and an operation that misses its lock is `deferred` (part 0). c_*, for each
-- operation: who claims, for how long, at most how many heads, the failure budget, the last index
-- (null: none), how many events a log head brings (null: one). x_end: where its left out cursors end
-- in x_*. s_*: what the caller serves; s_budget are the entries' own budgets.
--
-- Answers as a2_claim_1.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_claim_available_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_claim_available_1(
  p_try boolean, p_now bigint[], p_session text[],
  c_holder text[], c_ttl bigint[], c_limit integer[], c_max_failures bigint[], c_through bigint[],
  c_run integer[], x_end integer[], x_consumer text[], x_kind integer[], x_name text[], x_idx bigint[],
  s_consumer text[], s_budget bigint[], s_log text[], s_types_end integer[], s_types text[]
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  r a2.a2_answer_1;
  v_session text;
  v_first integer;
  v_last integer := 0;
  v_locked boolean[];
  v_free boolean;
  v_plain integer[];
  -- What was claimed together.
  k_answer a2.a2_answer_1[];
  v_done a2.a2_answer_1;
begin
  if cardinality(p_session) > 1 then
    v_locked := a2.a2_locks_1(p_session, p_try);
    v_plain := a2.a2_plain_1(v_locked, p_session);
    if cardinality(v_plain) > 1 and s_consumer is not null then
      select a2.a2_claim_together_1(v_plain, l.life, l.head, l.at, p_session, c_holder, c_ttl, c_limit,
        c_through, c_run, x_end, s_consumer)
      into k_answer
      from a2.a2_stand_1(v_plain, p_now, p_session) l;
    end if;
  end if;
  for v_op in 1 .. cardinality(p_session) loop
    v_session := p_session[v_op];
    v_first := v_last + 1;
    v_last := coalesce(x_end[v_op], v_last);
    r := null;
    r.op := v_op;
    v_done := k_answer[v_op];
    if v_done.op = v_op then
      r.part := 2;
      r.status := 'claimed';
      r.head := v_done.head;
      r.clear_index := v_done.clear_index;
      r.at := v_done.at;
      return next r;
      v_done.head := null;
      v_done.clear_index := null;
      v_done.at := null;
      return next v_done;
      continue;
    end if;
    if v_locked is null then
      v_free := a2.a2_lock_1(v_session, p_try);
    else
      v_free := v_locked[v_op];
    end if;
    if not v_free then
      r.part := 0;
      r.status := 'deferred';
      return next r;
      continue;
    end if;
    r.at := coalesce(p_now[v_op], a2.a2_now_1());
    select e.life, e.idx into r.clear_index, r.head
    from a2.a2_events e where e.session_id = v_session order by e.idx desc limit 1;
    if not found then
      r.clear_index := 0;
      r.head := 0;
    end if;
    foreach r in array a2.a2_claim_1(r, v_session,
      c_holder[v_op], c_ttl[v_op], c_limit[v_op], c_max_failures[v_op], c_through[v_op], c_run[v_op],
      x_consumer[v_first : v_last], x_kind[v_first : v_last], x_name[v_first : v_last],
      x_idx[v_first : v_last],
      s_consumer, s_budget, s_log, s_types_end, s_types)
    loop
      return next r;
    end loop;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_claim_available_1');
  end if;
end
$a2$;
--> statement-breakpoint
