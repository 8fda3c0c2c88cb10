-- The first event of a type: ?1 sid, ?2 type, ?3 after this index. One row: the index.
select idx from a2_events where sid = ?1 and type = ?2 and idx > ?3 order by idx limit 1
