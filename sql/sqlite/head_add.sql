-- Adds a head: ?1 sid, ?2 consumer, ?3 kind, ?4 name, ?5 index, ?6 life, ?7 status.
insert into a2_heads (sid, consumer, kind, name, idx, life, status)
values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
