-- A participant's rows, expired ones too: ?1 namespace, ?2 participant. Columns as in presence_page.
select participant, field, value, seen, updated_at, expires_at
from a2_presence
where namespace = ?1 and participant = ?2
