-- The order of the last commit of an event; no row when there was none.
select seq from a2_events order by seq desc limit 1
