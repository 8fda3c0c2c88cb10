-- Starts a lifetime: ?1 session name, ?2 the marker's index.
update a2_sessions set clear_index = ?2 where name = ?1
