-- What stands beside the tables of the first file: their indexes, timers, how far reclaim got, and the type
-- that functions answer with. Each is made only where it is missing.

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

-- A page of event cursors: those that are leased or held, and the dead-lettered, in order of the index.
do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_heads_held' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_heads_held on a2_heads (session_id, life, consumer, idx)
      where status = 1 and kind = 0 and held_until > 0;
  end if;
end
$a2$;
--> statement-breakpoint

do $a2$
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_class
    where relname = 'a2_heads_dead_events' and relnamespace = quote_ident(current_schema())::regnamespace)
  then
    create index a2_heads_dead_events on a2_heads (session_id, life, consumer, idx)
      where status = 2 and kind = 0;
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
