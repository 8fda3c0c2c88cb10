-- What an earlier A2 left moves into the tables: the end of the first statement.

  if v_upgrade then
    update a2_events e
    set payload = regexp_replace(e.payload::text, c_white, c_kept, 'g')::json
    where e.payload::text ~ $re$[ \t\n\r]$re$
      and regexp_replace(e.payload::text, c_white, c_kept, 'g') <> e.payload::text;
    update a2_events e set cause = null where jsonb_typeof(e.cause) = 'null';
    if v_handlers then
      update a2_events e set cause = e.cause || jsonb_build_object('lane', (
          select p.lane from a2_events p
          where p.session_id = e.session_id and p.idx = (e.cause ->> 'index')::bigint))
      where e.cause is not null and e.cause ->> 'consumer' is null;
    end if;
    update a2_events e set cause = e.cause || '{"consumer": "a2.handlers"}'
    where e.cause is not null and e.cause ->> 'consumer' is null;
    update a2_events e
    set cause = (e.cause - 'kind') || case e.cause ->> 'kind' when 'event' then '{"lane": null}' else '{}' end::jsonb
    where e.cause ? 'kind' and e.cause ->> 'kind' is distinct from 'log';
    update a2_events e
    set life = m.idx
    from (
      select m.session_id, m.idx, lead(m.idx) over (partition by m.session_id order by m.idx) as next
      from a2_events m where m.event_type = 'a2.clear'
    ) m
    where e.session_id = m.session_id and e.idx >= m.idx and e.idx < coalesce(m.next, 9223372036854775807);
    insert into a2_clears (session_id, clear_index)
    select e.session_id, max(e.life) from a2_events e where e.life > 0 group by e.session_id;
    select concat_ws(', ', e.session_id, max(e.idx)) into v_found
    from a2_events e group by e.session_id, e.life, e.event_id having count(*) > 1 limit 1;
    if found then
      raise exception using errcode = 'A2003', message = format('the row (%s) of a2_events cannot be kept: '
        'event_id must be unique in the session''s lifetime', v_found);
    end if;
    if 'a2_clears' = any (v_old) then
      select format('%s, %s', session_id, coalesce(o.clear_index, 0)) into v_found
      from a2_old_clears o full join a2_clears k using (session_id)
      where coalesce(o.clear_index, 0) <> coalesce(k.clear_index, 0)
      limit 1;
      if found then
        raise exception using errcode = 'A2003', message = format('the row (%s) of a2_clears cannot be kept: '
          'it must name the latest event of type a2.clear in the log', v_found);
      end if;
    end if;
  end if;

  -- Event ids are unique within a lifetime.
  if to_regclass(quote_ident(current_schema()) || '.a2_events_id') is null then
    create unique index a2_events_id on a2_events (session_id, life, event_id);
  end if;

  if v_upgrade and v_handlers then
    if current_setting('a2.keep_unfinished', true) = 'on' then
      select format('%s, the first one in session %s at index %s', count(*) over (), e.session_id, e.idx)
      into v_found
      from a2_events e left join a2_clears k on k.session_id = e.session_id
      where e.processed_at is null and e.event_type <> 'a2.clear' and e.idx > coalesce(k.clear_index, 0)
      order by e.created_at, e.session_id, e.idx limit 1;
      if found then
        raise exception using errcode = 'A2003', message = format(
          'events wait for handlers that are no more (%s): let them finish, or drop their work with '
          'Migrate::drop_unfinished', v_found);
      end if;
    end if;
  elsif v_upgrade then
    -- The cursors' rows, by kind and name as today.
    create table a2_old_cursors as
    select c.*, k.kind as k, case k.kind when 0 then '' else c.lane end as n,
      coalesce(l.clear_index, 0) as life
    from a2_cursors c
    cross join lateral (select case coalesce(c.kind::text, case when c.lane is null then 'event' end)
      when 'event' then 0 when 'log' then 2 else 1 end as kind) k
    left join a2_clears l on l.session_id = c.session_id;

    -- Without statistics what follows is planned as if there were nothing, and is quadratic.
    analyze a2_events;
    analyze a2_old_cursors;
    analyze a2_lane_events;
    analyze a2_clears;

    insert into a2_logs (session_id, consumer, name, start_position, types)
    select distinct on (c.session_id, c.consumer, c.n) c.session_id, c.consumer, c.n,
      greatest(c.position, 0), case jsonb_typeof(to_jsonb(c.types))
        when 'array' then array(select jsonb_array_elements_text(to_jsonb(c.types)))
      end
    from a2_old_cursors c
    where c.k = 2
    order by c.session_id, c.consumer, c.n, c.epoch desc;

    -- A head for each cursor that has one. An error is cut on a character boundary where it is too long,
    -- and U+0001 is written as the store does.
    insert into a2_heads (session_id, idx, life, held_until, attempt_count, failure_count, kind, status,
      consumer, name, claim_holder, first_claimed_at, last_claimed_at, last_failed_at,
      last_failed_attempt, failed_at, last_error)
    select c.session_id, c.head, c.life,
      case
        when c.failed_at is not null then 0
        else greatest(coalesce(c.claim_expires_at, 0), case when c.claim_holder is null then 0 else 1 end)
      end,
      coalesce(c.attempt_count, 0), coalesce(c.failure_count, 0), c.k,
      case when c.failed_at is null then 1 else 2 end, c.consumer, c.n,
      case when c.failed_at is null then c.claim_holder end, c.first_claimed_at, c.last_claimed_at,
      c.last_failed_at, c.last_failed_attempt, c.failed_at,
      replace(case
        when octet_length(c.last_error) <= 65536 then c.last_error
        else (
          select convert_from(substring(convert_to(c.last_error, 'UTF8') for n), 'UTF8')
          from generate_series(65536, 65533, -1) n
          where get_byte(convert_to(c.last_error, 'UTF8'), n) & 192 <> 128
          order by n desc limit 1
        )
      end, chr(1), chr(1) || '1')
    from (
      select distinct on (c.session_id, c.consumer, c.k, c.n, i.idx) c.*
      from a2_old_cursors c
      cross join lateral (select case c.k when 0 then coalesce(c.head, c.completed_idx) end as idx) i
      order by c.session_id, c.consumer, c.k, c.n, i.idx, c.epoch desc
    ) c
    where c.head > c.life;

    -- What was completed in this lifetime: of a log, the last one alone.
    insert into a2_heads (session_id, idx, life, kind, status, consumer, name, done_attempt, done_through,
      returned_after, returned)
    select d.session_id, d.idx, coalesce(l.clear_index, 0), d.kind, 3, d.consumer, d.name,
      case when f.is_whole then d.attempt end, d.through, case when f.is_whole then f.after else d.idx end,
      case when f.is_whole then f.count else 0 end
    from (
      select distinct on (d.session_id, d.consumer, d.kind, d.name, d.idx) d.*
      from (
        select q.session_id, q.consumer, 1 as kind, coalesce(q.lane, '') as name, q.idx,
          q.completed_attempt as attempt, null::bigint as through, to_jsonb(q.returned_event_ids) as ids
        from a2_lane_events q where q.done
        union all
        select c.session_id, c.consumer, c.k, c.n, c.completed_idx, c.completed_attempt, null,
          to_jsonb(c.returned_event_ids)
        from a2_old_cursors c where c.k < 2
        union all
        (
          select distinct on (c.session_id, c.consumer, c.n) c.session_id, c.consumer, 2, c.n,
            c.completed_idx, c.completed_attempt, nullif(g.start_position, c.completed_idx),
            to_jsonb(c.returned_event_ids)
          from a2_old_cursors c
          join a2_logs g on g.session_id = c.session_id and g.consumer = c.consumer and g.name = c.n
          where c.k = 2 and c.completed_idx <= g.start_position
          order by c.session_id, c.consumer, c.n, c.completed_idx desc, c.epoch desc
        )
      ) d
      order by d.session_id, d.consumer, d.kind, d.name, d.idx, d.attempt desc nulls last
    ) d
    left join a2_clears l on l.session_id = d.session_id
    cross join lateral (
      select coalesce(min(e.idx - i.n), d.idx) as after, count(i.n) as count,
        count(e.idx) = count(i.n) and count(distinct e.idx - i.n) <= 1 as is_whole
      from jsonb_array_elements_text(case jsonb_typeof(d.ids) when 'array' then d.ids else '[]' end)
        with ordinality i(id, n)
      -- By the index for each id: planned as a join of the session's events it is quadratic.
      left join lateral (
        select e.idx from a2_events e
        where e.session_id = d.session_id and e.life = coalesce(l.clear_index, 0)
          and e.event_id >= i.id and e.event_id <= i.id
        order by e.event_id limit 1
      ) e on true
    ) f
    where d.idx > coalesce(l.clear_index, 0)
    on conflict do nothing;

    -- What waits on lanes; the first one of a lane that has no head is its head.
    insert into a2_heads (session_id, idx, life, kind, status, consumer, name)
    select q.session_id, q.idx, coalesce(l.clear_index, 0), 1, 0, q.consumer, coalesce(q.lane, '')
    from a2_lane_events q left join a2_clears l on l.session_id = q.session_id
    where q.done is not true and q.idx > coalesce(l.clear_index, 0)
    on conflict do nothing;
    update a2_heads h set status = 1
    from (
      select f.session_id, f.consumer, f.name, min(f.idx) filter (where f.status = 0) as idx
      from a2_heads f where f.kind = 1
      group by f.session_id, f.consumer, f.name having not bool_or(f.status in (1, 2))
    ) f
    where h.session_id = f.session_id and h.consumer = f.consumer and h.kind = 1 and h.name = f.name
      and h.idx = f.idx;
    select concat_ws(', ', o.session_id, o.consumer, o.name, o.idx) into v_found
    from (
      select h.*, lag(h.status, 1, 3::smallint) over (
        partition by h.session_id, h.consumer, h.name order by h.idx) as before
      from a2_heads h where h.kind = 1
    ) o
    where o.before <> 3 and o.status <> 0
    limit 1;
    if found then
      raise exception using errcode = 'A2003', message = format('the row (%s) of a2_lane_events cannot '
        'be kept: a lane''s head must be the first one that is not done', v_found);
    end if;

    if 'a2_snapshot_pins' = any (v_old) then
      analyze a2_heads;
      analyze a2_old_snapshot_pins;
      insert into a2_snapshot_pins (session_id, idx, up_to_index, kind, consumer, name, reducer_name)
      select h.session_id, h.idx, p.up_to_index, h.kind, h.consumer, h.name, p.reducer_name
      from a2_old_snapshot_pins p
      join a2_old_cursors c
        on c.session_id = p.session_id and c.consumer = p.consumer and c.cursor_key = p.cursor_key
      join a2_heads h on h.session_id = p.session_id and h.consumer = p.consumer and h.kind = c.k
        and h.name = c.n and h.idx = p.event_index
      where h.status = 1 and p.up_to_index >= h.life
      on conflict do nothing;
      update a2_heads h set pinned = true
      from a2_snapshot_pins p
      where p.session_id = h.session_id and p.consumer = h.consumer and p.kind = h.kind
        and p.name = h.name and p.idx = h.idx;
    end if;
  end if;

  if v_upgrade then
    -- The latest snapshots, and those that a pin names.
    if 'a2_snapshots' = any (v_old) then
      if 'a2_snapshot_history' = any (v_old) then
        insert into a2_snapshots select h.session_id, h.reducer_name, h.up_to_index, h.state::text::json
        from a2_snapshot_history h;
      end if;
      insert into a2_snapshots select o.session_id, o.reducer_name, o.up_to_index, o.state::text::json
      from a2_old_snapshots o
      on conflict (session_id, reducer_name, up_to_index) do update set state = excluded.state;
      delete from a2_snapshots s
      using (
        select r.session_id, r.reducer_name, max(r.up_to_index) as latest, max(k.clear_index) as life
        from a2_snapshots r left join a2_clears k on k.session_id = r.session_id
        group by r.session_id, r.reducer_name
      ) r
      where s.session_id = r.session_id and s.reducer_name = r.reducer_name and (s.up_to_index < r.life
        or s.up_to_index < r.latest and not exists (
          select from a2_snapshot_pins p where p.session_id = s.session_id
            and p.reducer_name = s.reducer_name and p.up_to_index = s.up_to_index));
      update a2_snapshots s set state = regexp_replace(s.state::text, c_white, c_kept, 'g')::json
      where s.state::text ~ $re$[ \t\n\r]$re$;
    end if;
    if 'a2_presence' = any (v_old) and 7 = (
      select count(*) from pg_attribute a
      where a.attrelid = to_regclass('a2_old_presence') and not a.attisdropped and a.attname = any (
        '{namespace,participant,field,value,seen,updated_at,expires_at}')
    ) then
      insert into a2_presence
      select o.namespace, o.participant, o.field,
        regexp_replace(o.value::text, c_white, c_kept, 'g')::json, o.seen, o.updated_at, o.expires_at
      from a2_old_presence o
      where o.expires_at > date_part('epoch', clock_timestamp()) * 1000;
    end if;

    -- What the earlier A2 alone has.
    select string_agg(c.oid::regclass::text, ', ') into v_found
    from pg_class c
    where c.relnamespace = v_schema and c.relkind in ('r', 'p') and (
      c.relname in ('a2_cursors', 'a2_lane_events', 'a2_snapshot_history', 'a2_schema', 'a2_old_cursors')
      or c.relname = any (select 'a2_old' || substr(t.name, 3) from unnest(c_aside) t(name)));
    if v_found is not null then
      execute 'drop table ' || v_found;
    end if;
    for v_each in select p.oid::regprocedure as name from pg_proc p
      where p.pronamespace = v_schema and p.proname = 'a2_batch'
    loop
      execute format('drop routine %s', v_each.name);
    end loop;
    if v_handlers then
      select string_agg(format('drop column %I', a.attname), ', ') into v_found
      from pg_attribute a
      where a.attrelid = 'a2_events'::regclass and not a.attisdropped and a.attname = any (
        '{lane,lane_ready,processed_at,processed_by_attempt,returned_event_ids,first_claimed_at,'
        'last_claimed_at,attempt_count,failure_count,last_failed_at,last_failed_attempt,last_error,'
        'failed_at,claim_holder,claim_expires_at}');
      execute 'alter table a2_events ' || v_found;
    end if;
    if (select c.relkind from pg_class c where c.oid = 'a2_events'::regclass) = 'r' then
      alter table a2_events set
        (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
    end if;
  end if;
end
$a2$;
--> statement-breakpoint
