-- The tables of the handlers releases (0.17 to 0.20): dispatch state stands on the events. PAYLOAD is
-- the type of payloads.

create table a2_events (
  session_id text not null,
  idx integer not null,
  event_id text not null,
  event_type text not null,
  payload PAYLOAD not null,
  cause json,
  created_at bigint not null,
  lane text,
  lane_ready boolean not null default true,
  processed_at bigint,
  processed_by_attempt integer,
  returned_event_ids text[],
  first_claimed_at bigint,
  last_claimed_at bigint,
  attempt_count integer not null default 0,
  failure_count integer not null default 0,
  last_failed_at bigint,
  last_failed_attempt integer,
  last_error text,
  failed_at bigint,
  claim_holder text,
  claim_expires_at bigint,
  primary key (session_id, idx)
);
create unique index a2_events_event_id on a2_events (event_id);
create index a2_events_unprocessed on a2_events (session_id, idx) where processed_at is null;
create index a2_events_lane_pending on a2_events (session_id, lane, idx) where processed_at is null;
create index a2_events_dispatch_ready on a2_events (session_id, idx)
  where processed_at is null and lane_ready and failed_at is null;
create index a2_events_claim_expiry on a2_events (claim_expires_at) where claim_expires_at is not null;
create index my_own on a2_events (created_at);
create table a2_snapshots (
  session_id text not null,
  reducer_name text not null,
  up_to_index integer not null,
  state PAYLOAD not null,
  primary key (session_id, reducer_name)
);
create table a2_snapshot_pins (
  session_id text not null,
  event_index integer not null,
  reducer_name text not null,
  up_to_index integer not null,
  primary key (session_id, event_index, reducer_name, up_to_index)
);
create table a2_schema (
  only_row boolean primary key default true check (only_row),
  version integer not null
);
insert into a2_schema (version) values (4);
