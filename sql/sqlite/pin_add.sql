-- Pins a snapshot: ?1 sid, the head (?2 consumer, ?3 kind, ?4 name, ?5 index), ?6 reducer, ?7 the
-- snapshot's index.
insert into a2_pins (sid, consumer, kind, name, idx, reducer, snapshot)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
on conflict do nothing
