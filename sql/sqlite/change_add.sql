-- Tells the watchers of other processes of a change: ?1 kind, ?2 name, ?3 patch. One row: its seq.
insert into a2_changes (kind, name, patch) values (?1, ?2, ?3) returning seq
