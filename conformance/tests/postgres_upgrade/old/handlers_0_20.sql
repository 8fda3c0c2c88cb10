-- Beside the logs, where a release of the handlers has them: clears and snapshots that pins keep.

create table a2_clears (session_id text primary key, clear_index integer not null);
insert into a2_clears values ('Überall', 2);
create table a2_snapshot_history (
  session_id text not null,
  reducer_name text not null,
  up_to_index integer not null,
  state json not null,
  primary key (session_id, reducer_name, up_to_index)
);
insert into a2_snapshot_history values ('order ''17'' {x}', 'sum', 2, '2');
