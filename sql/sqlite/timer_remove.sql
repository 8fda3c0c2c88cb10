-- Removes a timer: ?1 sid, ?2 key.
delete from a2_timers where sid = ?1 and key = ?2
