-- Removes the pins of a head: ?1 sid, ?2 consumer, ?3 kind, ?4 name, ?5 index.
delete from a2_pins
where sid = ?1 and consumer = ?2 and kind = ?3 and name = ?4 and idx = ?5
