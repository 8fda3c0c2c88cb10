-- Numbers a session that has no row yet: ?1 its name. One row: its sid.
insert into a2_sessions (name, sid)
values (?1, coalesce((select sid from a2_sessions order by sid desc limit 1), 0) + 1)
returning sid
