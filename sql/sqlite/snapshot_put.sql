-- Stores a snapshot in place of one of the same index: ?1 sid, ?2 reducer, ?3 index, ?4 state.
insert into a2_snapshots (sid, reducer, idx, state)
values (?1, ?2, ?3, ?4)
on conflict (sid, reducer, idx) do update set state = excluded.state
