-- The next session with a live head, of whatever lifetime: after sid ?1. One row: sid.
select sid from a2_heads where status = 1 and sid > ?1 order by sid limit 1
