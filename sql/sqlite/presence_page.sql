-- A namespace's rows that have not expired: ?1 namespace, ?2 now.
select participant, field, value, seen, updated_at, expires_at
from a2_presence
where namespace = ?1 and expires_at > ?2
order by participant, field
