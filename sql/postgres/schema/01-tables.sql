-- The tables of the Postgres store, each made only where it is missing.
--
-- The files of this folder, in the order of their names, are one text: apply it with search_path set
-- to the schema that shall hold the tables (its first schema is taken). Applying it again is safe, on
-- a live database too: nothing that exists is touched or waited for. The lines that end a statement
-- are for tools that send one statement a query; elsewhere they are comments.
--
-- `life` is the clear index that was in force when a row was made (0 before any clear): rows of an
-- earlier lifetime no longer exist for anybody, and reclaim deletes them. `idx` is an event's index
-- in its session's log. Times are milliseconds since the epoch. Names are ordered by their bytes,
-- whatever the database's collation. Every key starts with the session or the namespace, so that the
-- tables can be partitioned by it.

do $a2$
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
  if exists (
    select from pg_class c
    where c.relname = 'a2_events' and c.relnamespace = quote_ident(current_schema())::regnamespace
      and not exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'life')
  ) then
    raise exception using errcode = 'A2003',
      message = format('the schema %I has a table a2_events of another layout: use another schema',
        current_schema());
  end if;
end
$a2$;
--> statement-breakpoint

-- The logs. The last event's `life` is the session's clear index: no other row need be read for it.
-- `size` is the payload's length as text: answers end after so many bytes, and asking the payload itself
-- would read it as a whole.
do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_events' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create table a2_events (
      session_id text collate "C" not null,
      idx bigint not null,
      life bigint not null,
      created_at bigint not null,
      size integer,
      event_id text collate "C" not null,
      event_type text collate "C" not null,
      payload json not null,
      cause jsonb,
      primary key (session_id, idx)
    ) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_events_id' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create unique index a2_events_id on a2_events (session_id, life, event_id);
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_events_type' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_events_type on a2_events (session_id, event_type, idx);
  end if;
end
$a2$;
--> statement-breakpoint

-- One row for each event that a cursor has to do with. kind: 0 event, 1 lane, 2 log. status: 0 queued
-- on its lane, 1 live, 2 dead-lettered, 3 done. `held_until` is the end of the lease, or of the hold
-- before a retry; 0 is free, so that one index answers what is free, due, and when the next one is.
-- A log's position is that of its last done row (`done_through` when its completion gave one), so
-- that no row is updated once for each event.
do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_heads' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create table a2_heads (
      session_id text collate "C" not null,
      idx bigint not null,
      life bigint not null,
      held_until bigint not null default 0,
      attempt_count bigint not null default 0,
      failure_count bigint not null default 0,
      kind smallint not null,
      status smallint not null,
      pinned boolean not null default false, -- whether a snapshot may be kept for it
      consumer text collate "C" not null,
      name text collate "C" not null, -- of the lane or log, empty for an event cursor
      claim_holder text collate "C",
      first_claimed_at bigint,
      last_claimed_at bigint,
      last_failed_at bigint,
      last_failed_attempt bigint,
      failed_at bigint,
      done_at bigint,
      done_attempt bigint, -- null when skipped
      done_through bigint,
      returned_after bigint, -- the log's head before the returned events
      returned integer, -- how many there were
      last_error text,
      primary key (session_id, consumer, kind, name, idx)
    ) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02,
      autovacuum_analyze_scale_factor = 0.05);
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_heads_live' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_heads_live on a2_heads (session_id, life, consumer, held_until, idx, kind, name)
      where status = 1;
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_heads_dead' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_heads_dead on a2_heads (session_id, life, idx, consumer, kind, name)
      where status = 2;
  end if;
end
$a2$;
--> statement-breakpoint

-- Log cursors: where they started and what they take (null: every type). Written when one is made
-- and when its types change.
do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_logs' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create table a2_logs (
      session_id text collate "C" not null,
      consumer text collate "C" not null,
      name text collate "C" not null,
      start_position bigint not null,
      types text[] collate "C",
      primary key (session_id, consumer, name)
    );
  end if;
end
$a2$;
--> statement-breakpoint

-- What reclaim needs: the latest marker of every session that was ever cleared, and the one that it is
-- done with.
do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_clears' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create table a2_clears (
      session_id text collate "C" not null primary key,
      clear_index bigint not null,
      reclaimed bigint not null default 0
    ) with (fillfactor = 80);
  end if;
end
$a2$;
--> statement-breakpoint

-- How far reclaim got in a session. stage: 0 events, 1 heads, 2 snapshots, 3 pins, 4 timers; the rest
-- is where it goes on within the stage.
do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_reclaims' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create table a2_reclaims (
      session_id text collate "C" not null primary key,
      life bigint not null,
      stage integer not null,
      kind integer not null,
      consumer text collate "C" not null,
      name text collate "C" not null
    ) with (fillfactor = 50);
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_snapshots' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create table a2_snapshots (
      session_id text collate "C" not null,
      reducer_name text collate "C" not null,
      up_to_index bigint not null,
      state json not null,
      primary key (session_id, reducer_name, up_to_index)
    ) with (autovacuum_vacuum_scale_factor = 0.02);
  end if;
end
$a2$;
--> statement-breakpoint

-- Which head (consumer, kind, name, idx) keeps which snapshot.
do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_snapshot_pins' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create table a2_snapshot_pins (
      session_id text collate "C" not null,
      idx bigint not null,
      up_to_index bigint not null,
      kind smallint not null,
      consumer text collate "C" not null,
      name text collate "C" not null,
      reducer_name text collate "C" not null,
      primary key (session_id, consumer, kind, name, idx, reducer_name, up_to_index)
    ) with (autovacuum_vacuum_scale_factor = 0.02);
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_snapshot_pins_snapshot' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_snapshot_pins_snapshot
      on a2_snapshot_pins (session_id, reducer_name, up_to_index);
  end if;
end
$a2$;
--> statement-breakpoint

-- Timers. The targets are two arrays of equal length; no lane is an event cursor.
do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_timers' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create table a2_timers (
      session_id text collate "C" not null,
      timer_key text collate "C" not null,
      due_at bigint not null,
      origin_index bigint, -- a clear above it drops the timer
      size integer not null,
      event_id text collate "C" not null,
      event_type text collate "C" not null,
      target_consumer text[] collate "C" not null,
      target_lane text[] collate "C" not null,
      payload json not null,
      primary key (session_id, timer_key)
    ) with (autovacuum_vacuum_scale_factor = 0.02);
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_timers_session_due' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_timers_session_due on a2_timers (session_id, due_at, timer_key);
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_timers_due' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_timers_due on a2_timers (due_at, session_id);
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_timers_origin' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_timers_origin on a2_timers (session_id, origin_index)
      where origin_index is not null;
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_presence' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create table a2_presence (
      namespace text collate "C" not null,
      participant text collate "C" not null,
      field text collate "C" not null,
      value json not null,
      seen bigint,
      updated_at bigint not null,
      expires_at bigint not null,
      primary key (namespace, participant, field)
    ) with (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_presence_expiry' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_presence_expiry on a2_presence (namespace, expires_at);
  end if;
end
$a2$;
--> statement-breakpoint

-- What the functions of the session's verbs answer, row by row. part: 0 the outcome, 1 a stored
-- event, 2 a claim's outcome, 3 a claimed head, 4 an event of its run, 5 a renewed, superseded or
-- released claim. `at` is the time it was judged by.
do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_type
    where typname = 'a2_answer_1' and typnamespace = quote_ident(current_schema())::regnamespace)
  then
    create type a2_answer_1 as (
      op integer,
      part integer,
      status text,
      head bigint,
      clear_index bigint,
      at bigint,
      pending boolean,
      n bigint,
      ids text[],
      consumer text,
      kind smallint,
      name text,
      idx bigint,
      event_id text,
      event_type text,
      payload json,
      cause text,
      created_at bigint,
      attempt_count bigint,
      first_claimed_at bigint,
      last_claimed_at bigint,
      claim_holder text,
      claim_expires_at bigint,
      failure_count bigint,
      last_failed_at bigint,
      last_failed_attempt bigint,
      last_error text,
      failed_at bigint
    );
  end if;
end
$a2$;
--> statement-breakpoint
