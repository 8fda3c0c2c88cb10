-- What workers do with their attempts in the Postgres store: complete and fail them, each with a claim
-- in the same call, renew and release them.

-- Completes attempts; one operation for each of p_session.
--
-- p_try: locks are tried, and an operation that misses its lock is `deferred`. The attempt is
-- (p_consumer, p_kind, p_name, p_idx, p_attempt); p_through: a log goes on after this index; p_cause:
-- the attempt as the cause of what it returns. The returned events and their targets are as in
-- a2_append_1, and so is s_*. c_* and x_*: the claim that follows (no holder: none) as in
-- a2_claim_available_1; c_same: it serves what the completion does, else c_consumer and so on say what.
--
-- Answers a row of part 0 for each operation: completed (n events appended, the last at head), replayed
-- (the stored events follow as part 1), superseded, deferred, partial_duplicate (ids), not_found, full,
-- through_above_head. After the first three the claim's answer follows.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_complete_attempt_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_complete_attempt_1(
  p_try boolean, p_now bigint[], p_session text[], p_consumer text[], p_kind integer[], p_name text[],
  p_idx bigint[], p_attempt bigint[], p_through bigint[], p_cause text[],
  p_event_end integer[], p_id text[], p_type text[], p_payload json[], p_size integer[],
  p_target_end integer[], p_target_event integer[], p_target_consumer text[], p_target_lane text[],
  s_consumer text[], s_log text[], s_backfill boolean[], s_types_end integer[], s_types text[],
  c_holder text[], c_ttl bigint[], c_limit integer[], c_max_failures bigint[], c_through bigint[],
  c_run integer[], x_end integer[], x_consumer text[], x_kind integer[], x_name text[], x_idx bigint[],
  c_same boolean, c_consumer text[], c_budget bigint[], c_log text[], c_types_end integer[],
  c_types text[]
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  r a2.a2_answer_1;
  f record;
  v_session text;
  v_consumer text;
  v_kind integer;
  v_name text;
  v_idx bigint;
  v_now bigint;
  v_life bigint;
  v_head bigint;
  v_first integer;
  v_last integer := 0;
  v_count integer;
  v_target integer;
  v_last_target integer := 0;
  v_first_x integer;
  v_last_x integer := 0;
  v_live text[];
  v_locked boolean[];
  v_free boolean;
  v_known boolean;
  v_plain integer[];
  -- What was done together: completions, and the claims after them.
  d_place integer := 1;
  d_op integer[];
  d_life bigint[];
  d_head bigint[];
  d_at bigint[];
  d_events integer[];
  d_live boolean[];
  k_answer a2.a2_answer_1[];
  v_done a2.a2_answer_1;
begin
  if cardinality(p_session) > 1 then
    v_locked := a2.a2_locks_1(p_session, p_try);
    v_plain := a2.a2_plain_1(v_locked, p_session);
    if cardinality(v_plain) > 1 then
      select t.op, t.life, t.head, t.at, t.events, t.live
      into d_op, d_life, d_head, d_at, d_events, d_live
      from a2.a2_complete_together_1(v_plain, p_now, p_session, p_consumer, p_kind, p_name, p_idx,
        p_attempt, p_cause, p_event_end, p_id, p_type, p_payload, p_size,
        p_target_end, p_target_consumer, p_target_lane, c_holder is null, s_consumer, s_log) t;
      if c_holder is not null and d_op is not null then
        k_answer := a2.a2_claim_together_1(d_op, d_life, d_head, d_at, p_session, c_holder, c_ttl,
          c_limit, c_through, c_run, x_end, case when c_same then s_consumer else c_consumer end);
      end if;
    end if;
  end if;
  for v_op in 1 .. cardinality(p_session) loop
    v_session := p_session[v_op];
    v_consumer := p_consumer[v_op];
    v_kind := p_kind[v_op];
    v_name := p_name[v_op];
    v_idx := p_idx[v_op];
    v_first := v_last + 1;
    v_last := coalesce(p_event_end[v_op], v_last);
    v_count := v_last - v_first + 1;
    v_target := v_last_target + 1;
    v_last_target := coalesce(p_target_end[v_op], v_last_target);
    v_first_x := v_last_x + 1;
    v_last_x := coalesce(x_end[v_op], v_last_x);
    r := null;
    r.op := v_op;
    r.part := 0;
    v_known := false;
    if d_op[d_place] = v_op then
      r.status := 'completed';
      r.n := d_events[d_place];
      r.clear_index := d_life[d_place];
      r.head := d_head[d_place];
      r.at := d_at[d_place];
      r.pending := coalesce(d_live[d_place], false);
      v_known := d_live is not null;
      d_place := d_place + 1;
      v_life := r.clear_index;
    else
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

      select e.life, e.idx into r.clear_index, r.head
      from a2.a2_events e where e.session_id = v_session order by e.idx desc limit 1;
      if not found then
        r.clear_index := 0;
        r.head := 0;
      end if;
      r.at := v_now;
      select h.ctid as tid, h.status, h.attempt_count, h.claim_holder, h.done_attempt,
        h.returned_after, h.returned, h.pinned,
        case v_kind when 1 then (
          select n.ctid from a2.a2_heads n
          where n.session_id = v_session and n.consumer = v_consumer and n.kind = 1
            and n.name = v_name and n.idx > v_idx
          order by n.idx limit 1
        ) end as next
      into f
      from a2.a2_heads h
      where h.session_id = v_session and h.consumer = v_consumer and h.kind = v_kind
        and h.name = v_name and h.idx = v_idx;
      v_life := r.clear_index;
      v_head := r.head;

      if v_idx > v_head then
        r.status := 'not_found';
      elsif v_idx <= v_life or f.status is null then
        r.status := 'superseded';
      elsif f.status = 3 then
        -- A log remembers its last completion alone.
        if f.done_attempt is distinct from p_attempt[v_op] or (v_kind = 2 and (
          select h.idx from a2.a2_heads h
          where h.session_id = v_session and h.consumer = v_consumer and h.kind = 2
            and h.name = v_name and h.status = 3
          order by h.idx desc limit 1
        ) <> v_idx) then
          r.status := 'superseded';
        elsif a2.a2_returned_1(v_session, f.returned_after, f.returned)
          = coalesce(p_id[v_first : v_last], '{}')
        then
          r.status := 'replayed';
          r.n := v_count;
          r.pending := a2.a2_has_live_1(v_session, v_life, s_consumer);
        else
          r.status := 'partial_duplicate';
          r.ids := a2.a2_owned_1(v_session, v_life, p_id[v_first : v_last]);
        end if;
      elsif f.status <> 1 or f.claim_holder is null or f.attempt_count <> p_attempt[v_op] then
        r.status := 'superseded';
      elsif p_through[v_op] > v_head then
        r.status := 'through_above_head';
      elsif v_count > 0 then
        r.ids := nullif(a2.a2_owned_1(v_session, v_life, p_id[v_first : v_last]), '{}');
        if r.ids is not null then
          r.status := 'partial_duplicate';
        elsif v_head + v_count > 9007199254740991 then
          r.status := 'full';
        end if;
      end if;

      if r.status is null then
        r.status := 'completed';
        r.n := v_count;
        r.pending := a2.a2_finish_1(v_session, f.tid, f.next, v_consumer, v_kind, v_name, v_idx,
            f.pinned, p_attempt[v_op], v_now, v_head, v_count, p_through[v_op])
          and (s_consumer is null or v_consumer = any (s_consumer));
        if v_count > 0 then
          r.head := v_head + v_count;
          v_live := a2.a2_store_events_1(v_session, v_life, v_head, v_now,
            p_id[v_first : v_last], p_type[v_first : v_last], p_payload[v_first : v_last],
            p_size[v_first : v_last], null, p_cause[v_op],
            p_target_event[v_target : v_last_target], v_first - 1,
            p_target_consumer[v_target : v_last_target], p_target_lane[v_target : v_last_target]);
          r.pending := r.pending
            or coalesce(cardinality(v_live) > 0 and (s_consumer is null or v_live && s_consumer), false);
          if s_log is not null then
            r.pending := a2.a2_touch_logs_1(v_session, v_life, v_head, r.head,
              p_type[v_first : v_last], s_consumer, s_log, s_backfill, s_types_end, s_types,
              case v_kind when 2 then v_consumer end, case v_kind when 2 then v_name end) or r.pending;
          end if;
        end if;
        if v_kind = 2 then
          r.pending := (a2.a2_advance_1(v_session, v_life, r.head, v_consumer, v_name,
              coalesce(p_through[v_op], v_idx), s_consumer, s_log, s_types_end, s_types)
            and (s_consumer is null or v_consumer = any (s_consumer))) or r.pending;
        end if;
      end if;
    end if;

    v_done := k_answer[v_op];
    if v_done.op = v_op then
      r.pending := true;
    elsif r.status = 'completed' and not r.pending and not v_known then
      -- What was just made live need not be looked for, nor what the claim will find.
      if c_holder[v_op] is not null and c_same and v_first_x > v_last_x
        and coalesce(c_through[v_op] = 9007199254740991, true)
      then
        r.pending := null;
      else
        r.pending := a2.a2_has_live_1(v_session, v_life, s_consumer);
      end if;
    end if;
    if c_holder[v_op] is null or r.status not in ('completed', 'replayed', 'superseded') then
      return next r;
    end if;
    if r.status = 'replayed' then
      if c_holder[v_op] is not null then
        return next r;
        r.part := 2;
      end if;
      return query select * from a2.a2_events_of_1(v_op, v_session, v_life, p_id[v_first : v_last]);
    end if;
    continue when c_holder[v_op] is null or r.status not in ('completed', 'replayed', 'superseded');
    if v_done.op = v_op then
      if not c_same then
        r.pending := a2.a2_has_live_1(v_session, v_life, s_consumer);
      end if;
      return next r;
      r.part := 2;
      r.status := 'claimed';
      r.n := null;
      r.pending := null;
      return next r;
      v_done.head := null;
      v_done.clear_index := null;
      v_done.at := null;
      return next v_done;
    elsif c_same then
      foreach r in array a2.a2_claim_1(r, v_session, c_holder[v_op], c_ttl[v_op],
        c_limit[v_op], c_max_failures[v_op], c_through[v_op], c_run[v_op],
        x_consumer[v_first_x : v_last_x], x_kind[v_first_x : v_last_x],
        x_name[v_first_x : v_last_x], x_idx[v_first_x : v_last_x],
        s_consumer, c_budget, s_log, s_types_end, s_types)
      loop
        return next r;
      end loop;
    else
      foreach r in array a2.a2_claim_1(r, v_session, c_holder[v_op], c_ttl[v_op],
        c_limit[v_op], c_max_failures[v_op], c_through[v_op], c_run[v_op],
        x_consumer[v_first_x : v_last_x], x_kind[v_first_x : v_last_x],
        x_name[v_first_x : v_last_x], x_idx[v_first_x : v_last_x],
        c_consumer, c_budget, c_log, c_types_end, c_types)
      loop
        return next r;
      end loop;
    end if;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_complete_attempt_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The ids of the p_count events after p_after.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_returned_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_returned_1(p_session text, p_after bigint, p_count integer) returns text[]
language plpgsql as $body$
declare
  v_ids text[];
begin
  if p_count = 0 then
    return '{}';
  end if;
  select array_agg(e.event_id order by e.idx) into v_ids
  from (
    select e.event_id, e.idx from a2.a2_events e
    where e.session_id = p_session and e.idx > p_after and e.idx <= p_after + p_count
    order by e.idx
  ) e;
  if cardinality(v_ids) is distinct from p_count then
    perform a2.a2_corrupt_1(p_session, p_after + p_count, 'an event is missing from the log');
  end if;
  return v_ids;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_returned_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Fails attempts; one operation for each of p_session. p_error: what went wrong; p_max_failures: the
-- failure budget (null: none); p_retry_after: how long the head is held, in milliseconds. The claim
-- that follows is as in a2_complete_attempt_1.
--
-- Answers a row of part 0 for each operation: failed or dead (n: failures so far), superseded,
-- deferred, not_found. After the first three the claim's answer follows.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_fail_attempt_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_fail_attempt_1(
  p_try boolean, p_now bigint[], p_session text[], p_consumer text[], p_kind integer[], p_name text[],
  p_idx bigint[], p_attempt bigint[], p_error text[], p_max_failures bigint[], p_retry_after bigint[],
  c_holder text[], c_ttl bigint[], c_limit integer[], c_max_failures bigint[], c_through bigint[],
  c_run integer[], x_end integer[], x_consumer text[], x_kind integer[], x_name text[], x_idx bigint[],
  c_consumer text[], c_budget bigint[], c_log text[], c_types_end integer[], c_types text[]
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  r a2.a2_answer_1;
  f record;
  v_session text;
  v_now bigint;
  v_first_x integer;
  v_last_x integer := 0;
begin
  for v_op in 1 .. cardinality(p_session) loop
    v_session := p_session[v_op];
    v_first_x := v_last_x + 1;
    v_last_x := coalesce(x_end[v_op], v_last_x);
    r := null;
    r.op := v_op;
    r.part := 0;
    if not a2.a2_lock_1(v_session, p_try) then
      r.status := 'deferred';
      return next r;
      continue;
    end if;
    v_now := coalesce(p_now[v_op], a2.a2_now_1());

    select e.life, e.idx into r.clear_index, r.head
    from a2.a2_events e where e.session_id = v_session order by e.idx desc limit 1;
    if not found then
      r.clear_index := 0;
      r.head := 0;
    end if;
    r.at := v_now;
    select h.ctid as tid, h.status, h.attempt_count, h.claim_holder, h.failure_count,
      h.last_failed_attempt, h.pinned
    into f
    from a2.a2_heads h
    where h.session_id = v_session and h.consumer = p_consumer[v_op] and h.kind = p_kind[v_op]
      and h.name = p_name[v_op] and h.idx = p_idx[v_op];
    if p_idx[v_op] > r.head then
      r.status := 'not_found';
      return next r;
      continue;
    end if;
    if p_idx[v_op] <= r.clear_index or f.status is null or f.status = 3
      or f.attempt_count <> p_attempt[v_op]
    then
      r.status := 'superseded';
    elsif f.claim_holder is null then
      if f.last_failed_attempt = p_attempt[v_op] then
        r.status := case f.status when 2 then 'dead' else 'failed' end;
        r.n := f.failure_count;
      else
        r.status := 'superseded';
      end if;
    else
      r.n := f.failure_count + 1;
      r.status := case when r.n >= p_max_failures[v_op] then 'dead' else 'failed' end;
      update a2.a2_heads h
      set status = case r.status when 'dead' then 2 else 1 end,
        held_until = case
          when r.status = 'failed' and p_retry_after[v_op] > 0
          then a2.a2_after_1(v_now, p_retry_after[v_op]) else 0
        end,
        claim_holder = null, failure_count = r.n, last_failed_at = v_now,
        last_failed_attempt = p_attempt[v_op], last_error = p_error[v_op],
        failed_at = case r.status when 'dead' then v_now end
      where h.ctid = f.tid and h.session_id = v_session;
      if r.status = 'dead' and f.pinned then
        perform a2.a2_release_pins_1(
          v_session, p_consumer[v_op], p_kind[v_op], p_name[v_op], p_idx[v_op]);
      end if;
    end if;
    if c_holder[v_op] is null then
      return next r;
    else
      foreach r in array a2.a2_claim_1(r, v_session, c_holder[v_op], c_ttl[v_op],
        c_limit[v_op], c_max_failures[v_op], c_through[v_op], c_run[v_op],
        x_consumer[v_first_x : v_last_x], x_kind[v_first_x : v_last_x],
        x_name[v_first_x : v_last_x], x_idx[v_first_x : v_last_x],
        c_consumer, c_budget, c_log, c_types_end, c_types)
      loop
        return next r;
      end loop;
    end if;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_fail_attempt_1');
  end if;
end
$a2$;
--> statement-breakpoint
