-- Changes a head's status alone: ?1 sid, ?2 consumer, ?3 kind, ?4 name, ?5 index, ?6 status.
update a2_heads
set status = ?6
where sid = ?1 and consumer = ?2 and kind = ?3 and name = ?4 and idx = ?5
