-- The sessions that events were appended to, in commits after ?1 up to ?2, at most ?3 events: seq,
-- session.
select e.seq, s.name
from a2_events e join a2_sessions s on s.sid = e.sid
where e.seq > ?1 and e.seq <= ?2
order by e.seq
limit ?3
