-- The events of session ?1 after index ?2, which are not recorded: index, id, type.
select idx, id, type from a2_events where sid = ?1 and idx > ?2 order by idx
