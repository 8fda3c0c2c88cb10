-- Keeps how far reclaim got: ?1 sid, ?2 clear index, ?3 stage, ?4 consumer, ?5 kind, ?6 name.
insert into a2_reclaims (sid, life, stage, consumer, kind, name)
values (?1, ?2, ?3, ?4, ?5, ?6)
on conflict (sid) do update
set life = excluded.life, stage = excluded.stage, consumer = excluded.consumer,
  kind = excluded.kind, name = excluded.name
