-- Sessions with live heads or timers, by the bytes of their names: $1 after this one, $2 looks at so
-- many, $3 now (null: the server's clock), $4 the served consumers (null: all).
--
-- Rows: session, and when a claim or a timer there can do something at the earliest; null when there
-- is nothing for these consumers. Fewer rows than $2: the end.
select * from a2.a2_pending_1($1::text, $2::integer, $3::bigint, $4::text[])
