-- What every function of the Postgres store begins with: who may run it, how it is planned, its lock.
--
-- Functions are made only where they are missing; one that changes gets a new name, so that old and
-- new processes run side by side. They are written for a schema named a2: the real one's name is put
-- in its place here, since a search_path of their own would cost each call.
--
-- Only their owner may execute them, until they are granted to others; a later run changes no grant.

-- Takes the right to execute a function from everybody but its owner: public has it by default, other
-- roles by default privileges.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_private_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_private_1(p_function text) returns void
language plpgsql as $body$
declare
  v_grantee text;
begin
  for v_grantee in
    select distinct case a.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end
    from pg_proc p
    cross join aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    where p.oid = p_function::regproc and a.grantee <> p.proowner
  loop
    execute format('revoke all on function %s from %s', p_function, v_grantee);
  end loop;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_private_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Every verb begins with this. Each statement must see what the lock's last holder committed, so an
-- isolation level that keeps one snapshot is refused.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_ready_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_ready_1() returns boolean
language plpgsql as $body$
begin
  if current_setting('transaction_isolation') in ('repeatable read', 'serializable') then
    raise exception using errcode = 'A2002',
      message = 'a2 functions need the isolation level read committed, not '
        || current_setting('transaction_isolation');
  end if;
  return (current_setting('enable_sort') = 'off' and current_setting('enable_hashjoin') = 'off')
    or a2.a2_seek_1();
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_ready_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Plans are kept by the session, and one that was made while a table was small would read it as a whole
-- when it is large, or sort what an index has in order. So nothing but an index is left to choose, and
-- every statement asks for an order, or a range (of one value, where it wants that one), that only the
-- right one has. On a connection that was
-- not opened with these settings they hold until the transaction ends.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_seek_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_seek_1() returns boolean
language plpgsql as $body$
begin
  perform set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
    set_config('enable_sort', 'off', true), set_config('enable_incremental_sort', 'off', true),
    set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
    set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true);
  return true;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_seek_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Takes a session's lock, or tries to: false when another has it. The number is the hash of the
-- schema's name, so that schemas of one database do not share locks.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_lock_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_lock_1(p_session text, p_try boolean) returns boolean
language sql as $body$
  select case
    when p_try then pg_try_advisory_xact_lock(hashtextextended(p_session, a2.a2_seed))
    else pg_advisory_xact_lock(hashtextextended(p_session, a2.a2_seed)) is not null
  end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_lock_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- The server's clock.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_now_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_now_1() returns bigint
language sql as $body$
  select floor(date_part('epoch', clock_timestamp()) * 1000)::bigint
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_now_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- This much later, at least 1 (0 is free) and at most the last time there is.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_after_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_after_1(p_at bigint, p_span bigint) returns bigint
language sql immutable as $body$
  select greatest(least(p_at, 9223372036854775807 - p_span) + p_span, 1)
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_after_1');
  end if;
end
$a2$;
--> statement-breakpoint

-- Stored data breaks an invariant: everything of the transaction is undone.
do $a2$
declare
  prefix text := quote_ident(current_schema()) || '.';
begin
  perform pg_advisory_xact_lock(hashtextextended(current_schema()::text, 0));
  if not exists (select from pg_proc
    where proname = 'a2_corrupt_1' and pronamespace = quote_ident(current_schema())::regnamespace)
  then
    execute replace(replace($sql$
create function a2.a2_corrupt_1(p_session text, p_idx bigint, p_reason text) returns boolean
language plpgsql as $body$
begin
  raise exception using errcode = 'A2001', message = p_reason,
    detail = json_build_object('session', p_session, 'index', p_idx)::text;
end
$body$
$sql$, 'a2.a2_seed', hashtextextended(current_schema()::text, 0)::text), 'a2.a2_', prefix || 'a2_');
    perform a2_private_1(prefix || 'a2_corrupt_1');
  end if;
end
$a2$;
--> statement-breakpoint
