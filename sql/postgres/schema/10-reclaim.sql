-- Deleting what lies below a session's marker in the Postgres store, in bounded steps.
--
-- Rows of earlier lifetimes stand among those of the present one (a lane's below its newer ones), so
-- the cursors are gone through one by one. Nothing is ever added below a marker: how far a call got is
-- kept, and the next one goes on there.

-- Deletes about 256 rows; answers how many, and whether nothing is left. It takes a lock of its own,
-- for which only other calls for this session wait: no writer touches what it deletes.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_reclaim_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_reclaim_1(p_session text, out deleted bigint, out done boolean)
language plpgsql as $body$
declare
  v_ready boolean := a2.a2_ready_1();
  v_locked boolean := pg_advisory_xact_lock(
    hashtextextended(p_session, hashtextextended('reclaim', a2.a2_seed))) is not null;
  v_life bigint;
  v_reclaimed bigint;
  -- The stage, and the cursor or reducer that was last done with in it.
  v_stage integer;
  v_kind integer;
  v_consumer text;
  v_name text;
  v_next record;
  v_tid tid;
  v_left integer := 256;
  v_looks integer := 1024;
  v_count integer;
begin
  deleted := 0;
  done := true;
  select k.clear_index, k.reclaimed into v_life, v_reclaimed
  from a2.a2_clears k where k.session_id = p_session;
  if not found or v_reclaimed >= v_life then
    return;
  end if;
  select p.stage, p.kind, p.consumer, p.name into v_stage, v_kind, v_consumer, v_name
  from a2.a2_reclaims p where p.session_id = p_session and p.life = v_life;
  if not found then
    v_stage := 0;
  end if;
  while v_left > 0 and v_looks > 0 and v_stage < 5 loop
    v_looks := v_looks - 1;
    v_count := 0;
    if v_stage = 0 then
      delete from a2.a2_events e
      where e.session_id = p_session and e.idx <= (
        select max(o.idx) from (
          select o.idx from a2.a2_events o
          where o.session_id = p_session and o.idx < v_life
          order by o.idx limit v_left
        ) o
      );
      get diagnostics v_count = row_count;
      v_next := null;
    elsif v_stage = 1 then
      select h.consumer, h.kind::integer, h.name, h.idx into v_next
      from a2.a2_heads h
      where h.session_id = p_session
        and (h.consumer, h.kind, h.name) > (v_consumer, v_kind, v_name)
      order by h.consumer, h.kind, h.name, h.idx limit 1;
      if v_next.idx <= v_life then
        delete from a2.a2_heads h
        where h.session_id = p_session and h.consumer = v_next.consumer and h.kind = v_next.kind
          and h.name = v_next.name and h.idx <= (
            select max(o.idx) from (
              select o.idx from a2.a2_heads o
              where o.session_id = p_session and o.consumer = v_next.consumer
                and o.kind = v_next.kind and o.name = v_next.name and o.idx <= v_life
              order by o.idx limit v_left
            ) o
          );
        get diagnostics v_count = row_count;
      end if;
    elsif v_stage = 2 then
      select '' as consumer, 0 as kind, s.reducer_name as name into v_next
      from a2.a2_snapshots s
      where s.session_id = p_session and s.reducer_name > v_name
      order by s.reducer_name, s.up_to_index limit 1;
      delete from a2.a2_snapshots s
      where s.session_id = p_session and s.reducer_name = v_next.name and s.up_to_index <= (
        select max(o.up_to_index) from (
          select o.up_to_index from a2.a2_snapshots o
          where o.session_id = p_session and o.reducer_name = v_next.name and o.up_to_index < v_life
          order by o.up_to_index limit v_left
        ) o
      );
      get diagnostics v_count = row_count;
    elsif v_stage = 3 then
      select '' as consumer, 0 as kind, p.reducer_name as name into v_next
      from a2.a2_snapshot_pins p
      where p.session_id = p_session and p.reducer_name > v_name
      order by p.reducer_name, p.up_to_index limit 1;
      delete from a2.a2_snapshot_pins p
      where p.session_id = p_session and p.reducer_name = v_next.name and p.up_to_index <= (
        select max(o.up_to_index) from (
          select o.up_to_index from a2.a2_snapshot_pins o
          where o.session_id = p_session and o.reducer_name = v_next.name and o.up_to_index < v_life
          order by o.up_to_index limit v_left
        ) o
      );
      get diagnostics v_count = row_count;
    else
      -- A timer of the same key may take one's place meanwhile.
      for v_tid in
        select t.ctid from a2.a2_timers t
        where t.session_id = p_session and t.origin_index is not null and t.origin_index < v_life
        order by t.origin_index limit v_left
        for update
      loop
        delete from a2.a2_timers t where t.ctid = v_tid and t.session_id = p_session;
        v_count := v_count + 1;
      end loop;
      v_next := null;
    end if;
    deleted := deleted + v_count;
    -- Pins of one snapshot go together: there may be some more.
    if v_count >= v_left then
      v_left := 0;
    elsif v_next is null then
      v_left := v_left - v_count;
      v_stage := v_stage + 1;
      v_kind := -1;
      v_consumer := '';
      v_name := '';
    else
      v_left := v_left - v_count;
      v_kind := v_next.kind;
      v_consumer := v_next.consumer;
      v_name := v_next.name;
    end if;
  end loop;
  done := v_stage = 5;
  if done then
    delete from a2.a2_reclaims p where p.session_id = p_session;
    update a2.a2_clears k set reclaimed = v_life
    where k.session_id = p_session and k.clear_index = v_life;
    -- False when the session was cleared again meanwhile.
    done := found;
  else
    insert into a2.a2_reclaims as p (session_id, life, stage, kind, consumer, name)
    values (p_session, v_life, v_stage, coalesce(v_kind, -1), coalesce(v_consumer, ''),
      coalesce(v_name, ''))
    on conflict (session_id) do update
    set life = excluded.life, stage = excluded.stage, kind = excluded.kind,
      consumer = excluded.consumer, name = excluded.name;
  end if;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_reclaim_1');
  end if;
end
$a2$;
--> statement-breakpoint
