-- Deletes rows of any namespace that have expired at ?1, at most ?2.
delete from a2_presence
where (namespace, participant, field) in (
  select namespace, participant, field
  from a2_presence
  where expires_at <= ?1
  order by expires_at
  limit ?2
)
