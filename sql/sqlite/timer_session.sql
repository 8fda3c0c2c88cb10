-- The next session with a timer: after sid ?1. One row: sid.
select sid from a2_timers where sid > ?1 order by sid limit 1
