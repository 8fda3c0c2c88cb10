-- Claims that last longer, or are given back, in the Postgres store.

-- Makes leases last p_ttl milliseconds from now; one operation, of one holder, for each of p_session.
-- p_claim_end: where its claims end in p_consumer, p_kind, p_name, p_idx, p_attempt.
--
-- Answers a row of part 0 (done, deferred) for each operation, then rows of part 5 for its claims that
-- were renewed or are superseded, n being the claim's place in its operation.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_renew_claims_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_renew_claims_1(
  p_try boolean, p_now bigint[], p_session text[], p_holder text[], p_ttl bigint[],
  p_claim_end integer[], p_consumer text[], p_kind integer[], p_name text[], p_idx bigint[],
  p_attempt bigint[]
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  r a2.a2_answer_1;
  f record;
  v_session text;
  v_first integer;
  v_last integer := 0;
  v_now bigint;
  v_life bigint;
begin
  for v_op in 1 .. cardinality(p_session) loop
    v_session := p_session[v_op];
    v_first := v_last + 1;
    v_last := p_claim_end[v_op];
    r := null;
    r.op := v_op;
    r.part := 0;
    if not a2.a2_lock_1(v_session, p_try) then
      r.status := 'deferred';
      return next r;
      continue;
    end if;
    v_now := coalesce(p_now[v_op], a2.a2_now_1());
    v_life := coalesce((
      select e.life from a2.a2_events e where e.session_id = v_session order by e.idx desc limit 1
    ), 0);
    r.status := 'done';
    r.at := v_now;
    r.clear_index := v_life;
    return next r;
    r.part := 5;
    for v_k in v_first .. v_last loop
      r.n := v_k - v_first + 1;
      if p_idx[v_k] <= v_life then
        r.status := 'superseded';
        return next r;
        continue;
      end if;
      select h.ctid as tid, h.status, h.attempt_count, h.claim_holder, h.held_until into f
      from a2.a2_heads h
      where h.session_id = v_session and h.consumer = p_consumer[v_k] and h.kind = p_kind[v_k]
        and h.name = p_name[v_k] and h.idx = p_idx[v_k];
      if not found then
        -- A log passes what it does not take.
        continue when p_kind[v_k] <> 2
          or p_idx[v_k] > coalesce(a2.a2_log_position_1(v_session, v_life, p_consumer[v_k], p_name[v_k]), 0);
        -- What lies above the log's head has not been passed, whatever the position.
        continue when p_idx[v_k] > coalesce((
          select e.idx from a2.a2_events e where e.session_id = v_session order by e.idx desc limit 1
        ), 0);
        r.status := 'superseded';
        return next r;
      elsif f.status = 3 or f.attempt_count > p_attempt[v_k] then
        r.status := 'superseded';
        return next r;
      elsif f.status = 1 and f.attempt_count = p_attempt[v_k] and f.claim_holder = p_holder[v_op]
        and f.held_until > v_now
      then
        update a2.a2_heads h set held_until = a2.a2_after_1(v_now, p_ttl[v_op])
        where h.ctid = f.tid and h.session_id = v_session;
        r.status := 'renewed';
        return next r;
      end if;
    end loop;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_renew_claims_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Gives claims back at once; one operation, of one holder, for each of p_session. Arguments and answer
-- are as in a2_renew_claims_1; the claims that were given back are `released`.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_release_claims_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_release_claims_1(
  p_try boolean, p_session text[], p_holder text[], p_claim_end integer[],
  p_consumer text[], p_kind integer[], p_name text[], p_idx bigint[], p_attempt bigint[]
) returns setof a2.a2_answer_1
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  r a2.a2_answer_1;
  f record;
  v_session text;
  v_first integer;
  v_last integer := 0;
begin
  for v_op in 1 .. cardinality(p_session) loop
    v_session := p_session[v_op];
    v_first := v_last + 1;
    v_last := p_claim_end[v_op];
    r := null;
    r.op := v_op;
    r.part := 0;
    if not a2.a2_lock_1(v_session, p_try) then
      r.status := 'deferred';
      return next r;
      continue;
    end if;
    r.clear_index := coalesce((
      select e.life from a2.a2_events e where e.session_id = v_session order by e.idx desc limit 1
    ), 0);
    r.status := 'done';
    return next r;
    r.part := 5;
    r.status := 'released';
    for v_k in v_first .. v_last loop
      select h.ctid as tid, h.status, h.attempt_count, h.claim_holder into f
      from a2.a2_heads h
      where h.session_id = v_session and h.consumer = p_consumer[v_k] and h.kind = p_kind[v_k]
        and h.name = p_name[v_k] and h.idx = p_idx[v_k];
      if f.status = 1 and f.attempt_count = p_attempt[v_k] and f.claim_holder = p_holder[v_op]
        and p_idx[v_k] > r.clear_index
      then
        update a2.a2_heads h set held_until = 0, claim_holder = null
        where h.ctid = f.tid and h.session_id = v_session;
        r.n := v_k - v_first + 1;
        return next r;
      end if;
    end loop;
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_release_claims_1');
  end if;
end
$a2$;
--> statement-breakpoint
