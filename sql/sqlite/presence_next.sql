-- The first namespace after ?1 that has rows. One row: namespace.
select namespace from a2_presence where namespace > ?1 order by namespace limit 1
