-- The schema of the Postgres store. What an earlier A2 (the npm package, 0.17 to 0.22) left is upgraded.
--
-- The files of `schema/`, in the order of their names, are one text, `schema.sql`: apply that with
-- search_path set to the schema that shall hold the tables (its first schema is taken). Applying it
-- again is safe, on a live database too: nothing that exists is touched or waited for. The lines that
-- end a statement are for tools that send one statement a query; elsewhere they are comments.
--
-- `life` is the clear index that was in force when a row was made (0 before any clear): rows of an
-- earlier lifetime no longer exist for anybody, and reclaim deletes them. `idx` is an event's index
-- in its session's log. Times are milliseconds since the epoch. Names are ordered by their bytes,
-- whatever the database's collation. Every key starts with the session or the namespace, so that the
-- tables can be partitioned by it.
--
-- The first statement, which the three files 00 are, makes the tables that an earlier A2 has as well, or
-- upgrades them, whole or not at all. It locks a2_events before all else: a writer of the earlier A2
-- waits, then fails, since what it writes to is gone. What becomes of what was there:
--
--   a2_events             stays as it is: `life` from the markers before the event, `size` null (not
--                         measured), `cause` as today's, white space outside of strings dropped
--   0.17 to 0.20          dispatch columns and their indexes, a2_snapshot_pins and a2_schema go; a cause
--                         without a consumer is that of `a2.handlers` on its parent's lane; what is not
--                         processed is dropped, or refused when a2.keep_unfinished is on
--   a2_cursors            head: a row of a2_heads, live or dead, with its dispatch state;
--     (0.21, 0.22)        completed_idx: a done row, its returned events found by their ids (where they
--                         do not stand in one row: as if skipped); a log's position and types: a2_logs.
--                         A lane's and a log's last epoch counts
--   a2_lane_events        rows of a2_heads, queued or done; the first one of a lane without a head: live
--   a2_snapshots, _history  one table: the latest, and what a pin of a live head names
--   a2_snapshot_pins      those of live heads
--   a2_clears             the markers say it; one that has no marker is refused
--   a2_presence           what has not expired, where it has today's columns
--   a2_batch              goes: a function that runs anything
--
-- A row that breaks a limit of the model is refused, by name.

do $a2$
declare
  v_schema oid;
  v_there text[];
  v_old text[];
  v_upgrade boolean := false;
  v_handlers boolean;
  v_found text;
  v_each record;
  c_tables constant text[] := '{a2_events,a2_cursors,a2_lane_events,a2_snapshots,a2_snapshot_history,'
    'a2_snapshot_pins,a2_clears,a2_presence,a2_schema}';
  -- Those of which today has others of the same name.
  c_aside constant text[] := '{a2_snapshots,a2_snapshot_pins,a2_clears,a2_presence}';
  -- White space outside of strings, in JSON text.
  c_white constant text := $re$("(?:[^"\\]|\\.)*")|[ \t\n\r]+$re$;
  c_kept constant text := $re$\1$re$;
begin
  if current_schema() is null then
    raise exception using errcode = '3F000',
      message = 'search_path names no schema that exists: set it to the one that shall hold the tables';
  end if;
  if current_setting('server_encoding') <> 'UTF8' then
    raise exception using errcode = 'A2003',
      message = format('the database''s encoding is %s: use one whose encoding is UTF8',
        current_setting('server_encoding'));
  end if;
  if current_schema() ~ '\$(body|sql)\$' then
    raise exception using errcode = '42602',
      message = 'the schema''s name must not contain $body$ or $sql$, which quote what is made in it';
  end if;
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  v_schema := quote_ident(current_schema())::regnamespace;
  v_there := array(select c.relname from pg_class c
    where c.relnamespace = v_schema and c.relkind in ('r', 'p') and starts_with(c.relname, 'a2_'));

  -- An earlier A2's tables: locked, looked at, and put aside where today's has one of that name.
  if 'a2_events' = any (v_there) and not exists (
    select from pg_attribute a
    where a.attrelid = to_regclass(quote_ident(current_schema()) || '.a2_events')
      and a.attname = 'life' and not a.attisdropped
  ) then
    if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
      raise exception using errcode = 'A2002',
        message = 'the upgrade needs the isolation level read committed, not '
          || current_setting('transaction_isolation');
    end if;
    select format('the upgrade must be run by %I, who owns %I', pg_get_userbyid(c.relowner), c.relname)
    into v_found
    from pg_class c
    where c.relnamespace = v_schema and c.relname = any (c_tables) and not pg_has_role(c.relowner, 'usage')
    order by c.relname limit 1;
    if found then
      raise exception using errcode = '42501', message = v_found;
    end if;
    execute (select format('lock table %s in access exclusive mode',
        string_agg(quote_ident(t.name), ', ' order by t.n))
      from unnest(c_tables) with ordinality t(name, n) where t.name = any (v_there));
    -- A store's connections do not plan for what is done once.
    perform set_config(s.name, 'on', true)
    from unnest('{enable_seqscan,enable_bitmapscan,enable_sort,enable_incremental_sort,enable_hashjoin,'
      'enable_mergejoin}'::text[]) s(name);
    perform set_config('plan_cache_mode', 'auto', true);
    -- A policy would hide rows: then it fails.
    perform set_config('row_security', 'off', true);

    v_handlers := exists (select from pg_attribute a
      where a.attrelid = 'a2_events'::regclass and a.attname = 'processed_at' and not a.attisdropped);
    if v_handlers and v_there && '{a2_cursors,a2_lane_events}' then
      raise exception using errcode = 'A2003', message = format('the schema %I has tables of two earlier '
        'layouts, a2_events.processed_at beside a2_cursors or a2_lane_events: drop those that are not in use',
        current_schema());
    end if;
    select format('%s.%s', t.name, c.name) into v_found
    from (values
      ('a2_events', true, 'session_id,idx,event_id,event_type,payload,cause,created_at'),
      ('a2_events', v_handlers, 'lane'),
      ('a2_cursors', not v_handlers, 'session_id,cursor_key,consumer,epoch,lane,kind,position,head,types,'
        'attempt_count,first_claimed_at,last_claimed_at,claim_holder,claim_expires_at,failure_count,'
        'last_failed_at,last_failed_attempt,last_error,failed_at,completed_idx,completed_attempt,'
        'returned_event_ids'),
      ('a2_lane_events', not v_handlers,
        'session_id,consumer,lane,idx,done,completed_attempt,returned_event_ids'),
      ('a2_snapshots', 'a2_snapshots' = any (v_there), 'session_id,reducer_name,up_to_index,state'),
      ('a2_snapshot_history', 'a2_snapshot_history' = any (v_there),
        'session_id,reducer_name,up_to_index,state'),
      ('a2_snapshot_pins', not v_handlers and 'a2_snapshot_pins' = any (v_there),
        'session_id,consumer,cursor_key,event_index,reducer_name,up_to_index'),
      ('a2_clears', 'a2_clears' = any (v_there), 'session_id,clear_index')
    ) t(name, expected, columns)
    cross join unnest(string_to_array(t.columns, ',')) c(name)
    where t.expected and not exists (select from pg_attribute a
      where a.attrelid = to_regclass(quote_ident(current_schema()) || '.' || t.name)
        and a.attname = c.name and not a.attisdropped)
    union all
    select 'primary key (session_id, idx)' where not exists (select from pg_index i
      where i.indrelid = 'a2_events'::regclass and i.indisprimary
        and pg_get_indexdef(i.indexrelid) ~ '\(session_id, idx\)')
    limit 1;
    if found then
      raise exception using errcode = 'A2003',
        message = format('the schema %I has a table a2_events of another layout (no %s): use another schema',
          current_schema(), v_found);
    end if;

    for v_each in
      select f.relation, n.field, f.key, r.text, r.breaks
      from (values
        ('a2_events', 'session_id, idx', 'name', 'session_id,event_id,event_type'),
        ('a2_events', 'session_id, idx', 'index', 'idx'),
        ('a2_events', 'session_id, idx', 'lane', 'lane'),
        ('a2_events', 'session_id, idx', 'json', 'payload'),
        ('a2_events', 'session_id, idx', 'cause', 'cause'),
        ('a2_cursors', 'session_id, consumer, cursor_key, epoch', 'name', 'session_id,consumer'),
        ('a2_cursors', 'session_id, consumer, cursor_key, epoch', 'kind', 'kind'),
        ('a2_cursors', 'session_id, consumer, cursor_key, epoch', 'lane', 'lane'),
        ('a2_cursors', 'session_id, consumer, cursor_key, epoch', 'types', 'types'),
        ('a2_cursors', 'session_id, consumer, cursor_key, epoch', 'holder', 'claim_holder'),
        ('a2_cursors', 'session_id, consumer, cursor_key, epoch', 'number', 'head,completed_idx,attempt_count,'
          'failure_count,last_failed_attempt,completed_attempt'),
        ('a2_lane_events', 'session_id, consumer, lane, idx', 'index', 'idx'),
        ('a2_lane_events', 'session_id, consumer, lane, idx', 'number', 'completed_attempt'),
        ('a2_lane_events', 'session_id, consumer, lane, idx', 'name', 'session_id,consumer'),
        ('a2_lane_events', 'session_id, consumer, lane, idx', 'lane', 'lane'),
        ('a2_snapshots', 'session_id, reducer_name, up_to_index', 'name', 'session_id,reducer_name'),
        ('a2_snapshots', 'session_id, reducer_name, up_to_index', 'number', 'up_to_index'),
        ('a2_snapshots', 'session_id, reducer_name, up_to_index', 'json', 'state'),
        ('a2_snapshot_history', 'session_id, reducer_name, up_to_index', 'name', 'session_id,reducer_name'),
        ('a2_snapshot_history', 'session_id, reducer_name, up_to_index', 'number', 'up_to_index'),
        ('a2_snapshot_history', 'session_id, reducer_name, up_to_index', 'json', 'state'),
        ('a2_presence', 'namespace, participant, field', 'name', 'namespace,participant,field'),
        ('a2_presence', 'namespace, participant, field', 'json', 'value'),
        ('a2_presence', 'namespace, participant, field', 'small', 'value')
      ) f(relation, key, rule, fields)
      cross join unnest(string_to_array(f.fields, ',')) n(field)
      join (values
        ('name', 'must be 1 to 512 bytes',
          '%1$I is null or octet_length(%1$I) not between 1 and 512'),
        ('holder', 'must be 1 to 512 bytes', 'octet_length(%1$I) not between 1 and 512'),
        ('lane', 'must be at most 512 bytes', 'octet_length(%1$I) > 512'),
        ('index', 'must be 1 to 9007199254740991',
          '%1$I is null or %1$I not between 1 and 9007199254740991'),
        ('number', 'must be 0 to 9007199254740991', '%1$I not between 0 and 9007199254740991'),
        ('small', 'must be at most 65536 bytes', 'octet_length(%1$I::text) > 65536'),
        ('kind', 'must be event, lane or log, the latter two with a name in lane', $q$
          %1$I::text not in ('event', 'lane', 'log') or %1$I::text <> 'event' and lane is null$q$),
        ('types', 'must be names of 1 to 512 bytes, or null', $q$case jsonb_typeof(to_jsonb(%1$I))
            when 'array' then jsonb_array_length(to_jsonb(%1$I)) = 0 or exists (
              select from jsonb_array_elements_text(to_jsonb(%1$I)) t(type)
              where t.type is null or octet_length(t.type) not between 1 and 512)
            when 'null' then false else %1$I is not null
          end$q$),
        ('cause', 'must be an attempt', $q$%1$I is not null and (
            select case jsonb_typeof(c.cause)
              when 'null' then false
              when 'object' then coalesce(jsonb_typeof(c.cause -> 'index'), '') <> 'number'
                or coalesce(c.cause ->> 'index', '') !~ '^[1-9][0-9]{0,15}$'
                or coalesce(jsonb_typeof(c.cause -> 'attempt'), '') <> 'number'
                or coalesce(c.cause ->> 'attempt', '') !~ '^[0-9]{1,18}$'
                or octet_length(c.cause ->> 'consumer') not between 1 and 512
                or octet_length(c.cause ->> 'lane') > 512
                or c.cause ->> 'kind' not in ('event', 'lane', 'log')
                or c.cause ->> 'kind' <> 'event' and c.cause ->> 'lane' is null
              else true
            end
            from (select %1$I::text::jsonb as cause offset 0) c
          )$q$),
        -- Each look takes the innermost arrays and objects away: as many looks as it is deep.
        ('json', 'must be JSON of at most 16 MiB that nests at most 127 arrays and objects', $q$
          %1$I is null
          or octet_length(%1$I::text) > 16777216 and octet_length(
            regexp_replace(%1$I::text, $re$("(?:[^"\\]|\\.)*")|[ \t\n\r]+$re$, $re$\1$re$, 'g')) > 16777216
          or octet_length(%1$I::text) - octet_length(translate(%1$I::text, '[{', '')) > 127 and (
            with recursive peeled(rest, n) as (
              select translate(regexp_replace(regexp_replace(%1$I::text, $re$"(?:[^"\\]|\\.)*"$re$, '', 'g'),
                '[^][{}]+', '', 'g'), '{}', '[]'), 0
              union all
              select replace(rest, '[]', ''), n + 1 from peeled where rest <> '' and n < 128
            )
            select max(n) > 127 from peeled
          )$q$)
      ) r(rule, text, breaks) on r.rule = f.rule
      where exists (select from pg_attribute a
        where a.attrelid = to_regclass(f.relation) and a.attname = n.field and not a.attisdropped)
        and f.relation = any (v_there)
    loop
      execute format('select left(concat_ws('', '', %s), 1000) from %I where %s limit 1',
        v_each.key, v_each.relation, format(v_each.breaks, v_each.field)) into v_found;
      if v_found is not null then
        raise exception using errcode = 'A2003', message = format(
          'the row (%s) of %s cannot be kept: %s %s', v_found, v_each.relation, v_each.field, v_each.text);
      end if;
    end loop;
    v_upgrade := true;

    -- What has the name of one of today's tables is put aside, but for the events; of these, the indexes
    -- that the earlier A2 made go: of ids, of what is to be done.
    for v_each in
      select i.indexrelid::regclass as index
      from pg_class c join pg_index i on i.indrelid = c.oid
      where c.relnamespace = v_schema and c.relname = any (c_aside)
    loop
      execute format('alter index %s rename to %I', v_each.index, 'a2_old_' || v_each.index::oid);
    end loop;
    for v_each in
      select t.name from unnest(c_aside) t(name) where t.name = any (v_there)
    loop
      execute format('alter table %I rename to %I', v_each.name, 'a2_old' || substr(v_each.name, 3));
    end loop;
    for v_each in
      select c.relname, k.conname
      from pg_index i
      join pg_class c on c.oid = i.indexrelid
      left join pg_constraint k on k.conindid = i.indexrelid and k.conrelid = i.indrelid
      where i.indrelid = 'a2_events'::regclass and not i.indisprimary
        and (starts_with(c.relname, 'a2_') or i.indisunique and exists (
          select from pg_attribute a
          where a.attrelid = i.indrelid and a.attnum = any (i.indkey) and a.attname = 'event_id'))
    loop
      if v_each.conname is null then
        execute format('drop index %I', v_each.relname);
      else
        execute format('alter table a2_events drop constraint %I', v_each.conname);
      end if;
    end loop;
    -- Types as they must be; what today's appends do not write may not be asked of them.
    select string_agg(case when t.type is null
        then format('alter column %I drop not null', a.attname)
        else format('alter column %1$I type %2$s using %1$I::text::%3$s', a.attname, t.type, t.base)
      end, ', ')
    into v_found
    from pg_attribute a
    left join (values
      ('session_id', 'text collate "C"', 'text'), ('idx', 'bigint', 'bigint'),
      ('created_at', 'bigint', 'bigint'), ('event_id', 'text collate "C"', 'text'),
      ('event_type', 'text collate "C"', 'text'), ('payload', 'json', 'json'), ('cause', 'jsonb', 'jsonb')
    ) t(name, type, base) on t.name = a.attname
    where a.attrelid = 'a2_events'::regclass and a.attnum > 0 and not a.attisdropped and case
      when t.type is null then a.attnotnull and not a.atthasdef and a.attidentity = ''
      else a.atttypid <> t.base::regtype or a.attcollation not in (0, '"C"'::regcollation)
    end;
    if v_found is not null then
      execute 'alter table a2_events ' || v_found;
    end if;
    alter table a2_events
      add column life bigint not null default 0, add column size integer,
      alter column created_at set not null;
    alter table a2_events alter column life drop default;
    v_old := v_there;
    v_there := '{a2_events}';
  end if;
