-- How far reclaim got: ?1 sid, ?2 the clear index that it works for. One row: stage, consumer, kind,
-- name.
select stage, consumer, kind, name from a2_reclaims where sid = ?1 and life = ?2
