-- The server's clock: one row, milliseconds since the epoch.
select floor(date_part('epoch', clock_timestamp()) * 1000)::bigint as now
