-- Sessions after ?1, by name, at most ?2: name, clear index, log head (0: nothing was appended).
select s.name, s.clear_index,
  coalesce((select e.idx from a2_events e where e.sid = s.sid order by e.idx desc limit 1), 0)
from a2_sessions s
where s.name > ?1
order by s.name
limit ?2
