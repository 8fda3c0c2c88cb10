-- Deletes events below the marker: ?1 sid, ?2 the marker's index, at most ?3.
delete from a2_events
where seq in (select seq from a2_events where sid = ?1 and idx < ?2 order by idx limit ?3)
