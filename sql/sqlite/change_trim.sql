-- Forgets the changes up to ?1.
delete from a2_changes where seq <= ?1
