-- Deletes rows of a namespace that have expired: ?1 namespace, ?2 now, at most ?3.
delete from a2_presence
where namespace = ?1 and (participant, field) in (
  select participant, field
  from a2_presence
  where namespace = ?1 and expires_at <= ?2
  order by expires_at
  limit ?3
)
