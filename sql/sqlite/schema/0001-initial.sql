-- Version 1 of the tables. Applied once, inside one transaction, by the store when it opens the file.
--
-- Sessions are numbered (`sid`), so that no other row repeats their name. `life` is the clear index
-- that was in force when a row was made: rows of an earlier one no longer exist for anybody, and
-- `reclaim` deletes them. `idx` is an event's index in its session's log. Times are milliseconds
-- since the epoch.

create table a2_meta (
  key text not null primary key,
  value any
) strict, without rowid;

insert into a2_meta (key, value) values ('schema', 1);

-- Every session that was ever written to; never deleted. One without events is not listed.
create table a2_sessions (
  name text not null primary key,
  sid integer not null unique,
  clear_index integer not null default 0,
  reclaimed integer not null default 0 -- the clear index that reclaim is done with
) strict, without rowid;

-- The logs. `seq` is the order of commits over all sessions: the last row is never deleted, so it
-- only grows, and `seq > the last one seen` finds what others appended.
create table a2_events (
  seq integer primary key,
  sid integer not null,
  idx integer not null,
  id text not null,
  type text not null,
  created_at integer not null,
  cause text,
  payload text not null
) strict;

create unique index a2_events_log on a2_events (sid, idx);

-- Where in its log the event of an id is, and where those of a type are. They are written for eight
-- events at once, when an index divisible by eight is reached: the few events after the last such
-- index are looked at themselves.
create table a2_ids (
  sid integer not null,
  life integer not null,
  id text not null,
  idx integer not null,
  primary key (sid, life, id)
) strict, without rowid;

create table a2_types (
  sid integer not null,
  life integer not null,
  type text not null,
  idx integer not null,
  primary key (sid, life, type, idx)
) strict, without rowid;

-- One row for each event that a cursor has to do with. kind: 0 event, 1 lane, 2 log (a log has a
-- row for its present head alone). status: 0 queued on its lane, 1 live, 2 dead-lettered, 3 done.
create table a2_heads (
  sid integer not null,
  consumer text not null,
  kind integer not null,
  name text not null, -- of the lane or log, empty for an event cursor
  idx integer not null,
  life integer not null,
  status integer not null,
  held_until integer, -- the end of the lease, or of the hold before a retry; null when free
  attempt_count integer not null default 0,
  first_claimed_at integer,
  last_claimed_at integer,
  claim_holder text,
  failure_count integer not null default 0,
  last_failed_at integer,
  last_failed_attempt integer,
  last_error text,
  failed_at integer,
  done_attempt integer, -- null when skipped
  done_at integer,
  returned_after integer, -- the log's head before the returned events
  returned integer, -- how many there were
  primary key (sid, consumer, kind, name, idx)
) strict, without rowid;

-- What can be claimed, free heads first, then by the end of their lease.
create index a2_heads_live on a2_heads (sid, life, consumer, held_until, idx, kind, name)
  where status = 1;
create index a2_heads_dead on a2_heads (sid, life, consumer, idx, kind, name) where status = 2;

-- Log cursors, also those of an earlier lifetime: they go on from the marker.
create table a2_logs (
  sid integer not null,
  consumer text not null,
  name text not null,
  position integer not null,
  head integer,
  types text, -- a JSON array, null for all
  done_idx integer, -- its last completion
  done_attempt integer,
  done_at integer,
  returned_after integer,
  returned integer,
  primary key (sid, consumer, name)
) strict, without rowid;

create table a2_snapshots (
  sid integer not null,
  reducer text not null,
  idx integer not null,
  state text not null
) strict;

create unique index a2_snapshots_key on a2_snapshots (sid, reducer, idx);

-- Which head keeps which snapshot (of `reducer`, at `snapshot`).
create table a2_pins (
  sid integer not null,
  consumer text not null,
  kind integer not null,
  name text not null,
  idx integer not null,
  reducer text not null,
  snapshot integer not null,
  primary key (sid, consumer, kind, name, idx, reducer, snapshot)
) strict, without rowid;

create index a2_pins_snapshot on a2_pins (sid, reducer, snapshot);

create table a2_timers (
  sid integer not null,
  key text not null,
  due_at integer not null,
  origin integer, -- a clear above it drops the timer
  id text not null,
  type text not null,
  payload text not null,
  targets text -- a JSON array of {consumer, lane}, null for none
) strict;

create unique index a2_timers_key on a2_timers (sid, key);
create index a2_timers_session_due on a2_timers (sid, due_at, key);
create index a2_timers_due on a2_timers (due_at, sid);
create index a2_timers_origin on a2_timers (sid, origin) where origin is not null;

create table a2_presence (
  namespace text not null,
  participant text not null,
  field text not null,
  value text not null,
  seen integer,
  updated_at integer not null,
  expires_at integer not null,
  primary key (namespace, participant, field)
) strict, without rowid;

create index a2_presence_expiry on a2_presence (namespace, expires_at);

-- The last changes that are not events, for the watchers of other processes. kind: 0 a session was
-- redriven (name: the session), 1 presence changed (name: the namespace; patch: by whom, and what,
-- when that is short).
create table a2_changes (
  seq integer primary key,
  kind integer not null,
  name text not null,
  patch text
) strict;

-- How far reclaim got in a session. stage: 0 events, 1 ids, 2 types, 3 heads, 4 snapshots, 5 timers;
-- the names are where it goes on within the stage.
create table a2_reclaims (
  sid integer not null primary key,
  life integer not null,
  stage integer not null,
  consumer text not null,
  kind integer not null,
  name text not null
) strict;
