-- Who owns an event id: ?1 sid, ?2 life, ?3 id, ?4 the index up to which ids are recorded. One row:
-- the index.
select idx from a2_ids where sid = ?1 and life = ?2 and id = ?3
union all
select idx from a2_events where sid = ?1 and idx > ?4 and id = ?3
limit 1
