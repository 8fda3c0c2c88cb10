-- A namespace's rows that have not expired: $1 namespace, $2 now (null: the server's clock). Rows:
-- participant, field, value, seen, updated at, expires at, by participant and field.
select p.participant, p.field, p.value, p.seen, p.updated_at, p.expires_at
from a2.a2_presence p
where p.namespace = $1::text
  and p.expires_at > coalesce($2::bigint,
    floor(date_part('epoch', clock_timestamp()) * 1000)::bigint)
order by p.participant, p.field
