-- Forgets how far reclaim got: ?1 sid.
delete from a2_reclaims where sid = ?1
