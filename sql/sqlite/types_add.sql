-- Records the types of the events in (?3, ?4], but for a marker's: ?1 sid, ?2 life.
insert into a2_types (sid, life, type, idx)
select sid, ?2, type, idx
from a2_events
where sid = ?1 and idx > ?3 and idx <= ?4 and type <> 'a2.clear'
