-- The number of the last change; no row when there was none.
select seq from a2_changes order by seq desc limit 1
