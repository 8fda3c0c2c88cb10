-- Who owns a recorded event id: ?1 sid, ?2 life, ?3 id. One row: the index.
select idx from a2_ids where sid = ?1 and life = ?2 and id = ?3
