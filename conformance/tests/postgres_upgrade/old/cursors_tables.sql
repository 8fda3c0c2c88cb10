-- The tables of 0.21 and 0.22: a row for each run of a cursor, lane queues beside it. NAMES is the type
-- of lists of names.

create table a2_events (
  session_id text not null,
  idx bigint not null,
  event_id text not null,
  event_type text not null,
  payload json not null,
  cause jsonb,
  created_at bigint not null,
  primary key (session_id, idx)
);
create table a2_cursors (
  session_id text not null,
  cursor_key text not null,
  consumer text not null,
  epoch bigint not null,
  lane text,
  kind text not null,
  position bigint not null,
  head bigint,
  types NAMES,
  attempt_count integer not null default 0,
  first_claimed_at bigint,
  last_claimed_at bigint,
  claim_holder text,
  claim_expires_at bigint,
  failure_count integer not null default 0,
  last_failed_at bigint,
  last_failed_attempt integer,
  last_error text,
  failed_at bigint,
  completed_idx bigint,
  completed_attempt integer,
  returned_event_ids NAMES,
  primary key (session_id, cursor_key, consumer, epoch)
);
create table a2_lane_events (
  session_id text not null,
  consumer text not null,
  lane text not null,
  idx bigint not null,
  done boolean not null default false,
  completed_attempt integer,
  returned_event_ids NAMES,
  primary key (session_id, consumer, lane, idx)
);
create table a2_snapshots (
  session_id text not null,
  reducer_name text not null,
  up_to_index bigint not null,
  state json not null,
  primary key (session_id, reducer_name)
);
create table a2_snapshot_history (
  session_id text not null,
  reducer_name text not null,
  up_to_index bigint not null,
  state json not null,
  primary key (session_id, reducer_name, up_to_index)
);
create table a2_snapshot_pins (
  session_id text not null,
  event_index bigint not null,
  reducer_name text not null,
  up_to_index bigint not null,
  consumer text not null,
  cursor_key text not null,
  primary key (session_id, consumer, cursor_key, event_index, reducer_name, up_to_index)
);
create table a2_clears (session_id text primary key, clear_index bigint not null);
create table a2_presence (
  namespace text not null,
  participant text not null,
  field text not null,
  value json not null,
  seen bigint,
  updated_at bigint not null,
  expires_at bigint not null,
  primary key (namespace, participant, field)
);
create index a2_presence_expiry on a2_presence (namespace, expires_at);
create function a2_batch(statements text[]) returns void language plpgsql as $$
begin
  for i in 1 .. cardinality(statements) loop
    execute statements[i];
  end loop;
end
$$;
