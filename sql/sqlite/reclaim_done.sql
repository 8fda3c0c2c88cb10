-- Reclaim is done for a clear: ?1 session name, ?2 the clear index.
update a2_sessions set reclaimed = ?2 where name = ?1
