-- The changes after ?1, at most ?2: seq, kind, name, patch.
select seq, kind, name, patch from a2_changes where seq > ?1 order by seq limit ?2
