-- What was appended by commits after ?1 up to ?2, at most ?3 events in their order: session, index,
-- whether it is a clear marker.
select s.name, e.idx, e.type = 'a2.clear'
from a2_events e join a2_sessions s on s.sid = e.sid
where e.seq > ?1 and e.seq <= ?2
order by e.seq
limit ?3
