-- The tables that an earlier A2 has as well, or whose rows it has elsewhere: in the midst of the first
-- statement.

  -- The logs. The last event's `life` is the session's clear index: no other row need be read for it.
  -- `size` is the payload's length as text: answers end after so many bytes, and asking the payload itself
  -- would read it as a whole.
  if not 'a2_events' = any (v_there) then
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

  -- One row for each event that a cursor has to do with. kind: 0 event, 1 lane, 2 log. status: 0 queued
  -- on its lane, 1 live, 2 dead-lettered, 3 done. `held_until` is the end of the lease, or of the hold
  -- before a retry; 0 is free, so that one index answers what is free, due, and when the next one is.
  -- A log's position is that of its last done row (`done_through` when its completion gave one), so
  -- that no row is updated once for each event.
  if not 'a2_heads' = any (v_there) then
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

  -- Log cursors: where they started and what they take (null: every type). Written when one is made
  -- and when its types change.
  if not 'a2_logs' = any (v_there) then
    create table a2_logs (
      session_id text collate "C" not null,
      consumer text collate "C" not null,
      name text collate "C" not null,
      start_position bigint not null,
      types text[] collate "C",
      primary key (session_id, consumer, name)
    );
  end if;

  -- What reclaim needs: the latest marker of every session that was ever cleared, and the one that it is
  -- done with.
  if not 'a2_clears' = any (v_there) then
    create table a2_clears (
      session_id text collate "C" not null primary key,
      clear_index bigint not null,
      reclaimed bigint not null default 0
    ) with (fillfactor = 80);
  end if;

  if not 'a2_snapshots' = any (v_there) then
    create table a2_snapshots (
      session_id text collate "C" not null,
      reducer_name text collate "C" not null,
      up_to_index bigint not null,
      state json not null,
      primary key (session_id, reducer_name, up_to_index)
    ) with (autovacuum_vacuum_scale_factor = 0.02);
  end if;

  -- Which head (consumer, kind, name, idx) keeps which snapshot.
  if not 'a2_snapshot_pins' = any (v_there) then
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

  if not 'a2_presence' = any (v_there) then
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
