-- Records the ids of the events in (?3, ?4]: ?1 sid, ?2 life.
insert into a2_ids (sid, life, id, idx)
select sid, ?2, id, idx from a2_events where sid = ?1 and idx > ?3 and idx <= ?4
