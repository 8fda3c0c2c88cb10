-- Removes a field: ?1 namespace, ?2 participant, ?3 field.
delete from a2_presence where namespace = ?1 and participant = ?2 and field = ?3
