-- Listings of the Postgres store that a single statement cannot make at the cost of their own size.
--
-- The listings are stable functions: all their statements see what the statement that calls them does.

-- A cursor's row of an answer: p_row with its key, and its head's dispatch state (p_idx null: idle).
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_cursor_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_cursor_1(
  p_row a2.a2_answer_1, p_session text, p_consumer text, p_kind integer, p_name text, p_idx bigint
) returns a2.a2_answer_1
language plpgsql stable as $body$
declare
  r a2.a2_answer_1 := p_row;
begin
  r.consumer := p_consumer;
  r.kind := p_kind;
  r.name := p_name;
  r.idx := p_idx;
  select h.attempt_count, h.first_claimed_at, h.last_claimed_at, h.claim_holder,
    nullif(h.held_until, 0), h.failure_count, h.last_failed_at, h.last_failed_attempt, h.last_error,
    h.failed_at
  into r.attempt_count, r.first_claimed_at, r.last_claimed_at, r.claim_holder, r.claim_expires_at,
    r.failure_count, r.last_failed_at, r.last_failed_attempt, r.last_error, r.failed_at
  from a2.a2_heads h
  where h.session_id = p_session and h.consumer = p_consumer and h.kind = p_kind
    and h.name = p_name and h.idx = p_idx;
  return r;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_cursor_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- A lane of this lifetime: how far it got and its head. Its rows are, in the order of their indexes, done
-- ones, then at most one head, then queued ones: the head is found by bisection, so that a listing
-- does not cost the queue. Both are null when the lane has no row in this lifetime.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_lane_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_lane_1(
  p_session text, p_life bigint, p_consumer text, p_lane text, out passed bigint, out head bigint
)
language plpgsql stable as $body$
declare
  v_last bigint;
  v_status integer;
  v_done bigint := p_life;
  v_open bigint;
  v_middle bigint;
  v_idx bigint;
begin
  select h.idx, h.status into v_last, v_status
  from a2.a2_heads h
  where h.session_id = p_session and h.consumer = p_consumer and h.kind = 1 and h.name = p_lane
    and h.idx > p_life
  order by h.idx desc limit 1;
  if not found then
    return;
  end if;
  if v_status = 3 then
    passed := v_last;
    return;
  end if;
  -- Every row up to v_done is done; the first one after v_open is not. Mostly it is the first of all.
  select h.idx, h.status into v_idx, v_status
  from a2.a2_heads h
  where h.session_id = p_session and h.consumer = p_consumer and h.kind = 1 and h.name = p_lane
    and h.idx > p_life
  order by h.idx limit 1;
  if v_status <> 3 then
    passed := p_life;
    head := v_idx;
    return;
  end if;
  v_done := v_idx;
  head := v_last;
  v_open := v_last - 1;
  while v_done < v_open loop
    v_middle := v_done + (v_open - v_done) / 2;
    select h.idx, h.status into v_idx, v_status
    from a2.a2_heads h
    where h.session_id = p_session and h.consumer = p_consumer and h.kind = 1 and h.name = p_lane
      and h.idx > v_middle
    order by h.idx limit 1;
    if v_status = 3 then
      v_done := v_idx;
    else
      v_open := v_middle;
      head := v_idx;
    end if;
  end loop;
  passed := v_done;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_lane_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- A page of a session's cursors, after (p_consumer, p_rank, p_name, p_idx), by consumer, rank (0 lane,
-- 1 log, 2 event cursor), name and index. The first row is of part 0: the log's head and marker; a
-- cursor's is of part 3: n its position, idx its head.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_cursors_2' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_cursors_2(
  p_session text, p_consumer text, p_rank integer, p_name text, p_idx bigint, p_limit integer
) returns setof a2.a2_answer_1
language plpgsql stable as $body$
declare
  v_seek boolean := a2.a2_seek_1();
  r a2.a2_answer_1;
  v_life bigint;
  v_consumer text := p_consumer;
  v_rank integer := p_rank;
  -- The names of a rank begin after this one; null: with the first, which may be empty.
  v_name text := case when p_rank < 0 then null else p_name end;
  v_idx bigint := case when p_rank = 2 then p_idx else 0 end;
  v_left integer := p_limit;
  v_position bigint;
  v_head bigint;
  v_row record;
begin
  r.op := 1;
  r.part := 0;
  select e.life, e.idx into v_life, r.head
  from a2.a2_events e where e.session_id = p_session order by e.idx desc limit 1;
  if not found then
    v_life := 0;
    r.head := 0;
  end if;
  r.clear_index := v_life;
  return next r;
  r.part := 3;
  r.head := null;
  r.clear_index := null;
  loop
    while v_consumer <> '' and v_rank <= 0 and v_left > 0 loop
      v_rank := 0;
      v_name := (
        select h.name from a2.a2_heads h
        where h.session_id = p_session and h.consumer = v_consumer and h.kind = 1
          and h.name >= coalesce(v_name, '') and (v_name is null or h.name > v_name)
        order by h.name, h.idx limit 1
      );
      if v_name is null then
        v_rank := 1;
        exit;
      end if;
      select l.passed, l.head into v_position, v_head
      from a2.a2_lane_1(p_session, v_life, v_consumer, v_name) l;
      if v_position is not null then
        r := a2.a2_cursor_1(r, p_session, v_consumer, 1, v_name, v_head);
        r.n := v_position;
        return next r;
        v_left := v_left - 1;
      end if;
    end loop;
    while v_consumer <> '' and v_rank = 1 and v_left > 0 loop
      v_name := (
        select l.name from a2.a2_logs l
        where l.session_id = p_session and l.consumer = v_consumer
          and l.name >= coalesce(v_name, '') and (v_name is null or l.name > v_name)
        order by l.name limit 1
      );
      if v_name is null then
        v_rank := 2;
        exit;
      end if;
      r := a2.a2_cursor_1(r, p_session, v_consumer, 2, v_name,
        a2.a2_log_head_1(p_session, v_life, v_consumer, v_name));
      r.n := a2.a2_log_position_1(p_session, v_life, v_consumer, v_name);
      return next r;
      v_left := v_left - 1;
    end loop;
    if v_consumer <> '' and v_rank = 2 and v_left > 0 then
      for v_row in
        select h.idx
        from (
          (
            select h.idx from a2.a2_heads h
            where h.session_id = p_session and h.life = v_life and h.consumer = v_consumer
              and h.status = 1 and h.held_until = 0 and h.idx > v_idx and h.kind = 0
            order by h.held_until, h.idx limit v_left
          )
          union all
          (
            select h.idx from a2.a2_heads h
            where h.session_id = p_session and h.life = v_life and h.consumer >= v_consumer
              and h.consumer <= v_consumer and h.status = 1 and h.held_until > 0 and h.idx > v_idx
              and h.kind = 0
            order by h.consumer, h.idx limit v_left
          )
          union all
          (
            select h.idx from a2.a2_heads h
            where h.session_id = p_session and h.life = v_life and h.consumer >= v_consumer
              and h.consumer <= v_consumer and h.status = 2 and h.idx > v_idx and h.kind = 0
            order by h.consumer, h.idx limit v_left
          )
        ) h
        order by h.idx limit v_left
      loop
        r := a2.a2_cursor_1(r, p_session, v_consumer, 0, '', v_row.idx);
        r.n := v_row.idx - 1;
        return next r;
        v_left := v_left - 1;
      end loop;
    end if;
    exit when v_left = 0;
    v_consumer := least(
      (
        select h.consumer from a2.a2_heads h
        where h.session_id = p_session and h.consumer > v_consumer
        order by h.consumer, h.kind, h.name, h.idx limit 1
      ),
      (
        select l.consumer from a2.a2_logs l
        where l.session_id = p_session and l.consumer > v_consumer
        order by l.consumer, l.name limit 1
      )
    );
    exit when v_consumer is null;
    v_rank := 0;
    v_name := null;
    v_idx := 0;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_cursors_2');
  end if;
end
$a2$;
--> statement-breakpoint

-- A page of the sessions with live heads or timers after p_after: at most p_limit are looked at. When
-- a claim for the consumers (null: all) or a timer can do something there; null when there is nothing.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_pending_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_pending_1(
  p_after text, p_limit integer, p_now bigint, p_consumers text[],
  out session_id text, out not_before bigint
) returns setof record
language plpgsql stable as $body$
declare
  v_seek boolean := a2.a2_seek_1();
  v_now bigint := coalesce(p_now, a2.a2_now_1());
  v_session text := p_after;
  v_life bigint;
begin
  for v_n in 1 .. p_limit loop
    v_session := least(
      (
        select h.session_id from a2.a2_heads h
        where h.status = 1 and h.session_id > v_session
        order by h.session_id, h.life, h.consumer, h.held_until limit 1
      ),
      (
        select t.session_id from a2.a2_timers t
        where t.session_id > v_session
        order by t.session_id, t.timer_key limit 1
      )
    );
    exit when v_session is null;
    v_life := coalesce((
      select e.life from a2.a2_events e where e.session_id = v_session order by e.idx desc limit 1
    ), 0);
    session_id := v_session;
    not_before := least(
      (
        select min(case h.held_until when 0 then v_now else h.held_until end)
        from unnest(coalesce(p_consumers, a2.a2_live_consumers_1(v_session, v_life))) c(consumer)
        cross join lateral (
          select h.held_until from a2.a2_heads h
          where h.session_id = v_session and h.life = v_life and h.status = 1
            and h.consumer = c.consumer
          order by h.held_until, h.idx limit 1
        ) h
      ),
      (
        select t.due_at from a2.a2_timers t
        where t.session_id = v_session and (t.origin_index is null or t.origin_index >= v_life)
        order by t.due_at, t.timer_key limit 1
      )
    );
    return next;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_pending_1');
  end if;
end
$a2$;
--> statement-breakpoint
