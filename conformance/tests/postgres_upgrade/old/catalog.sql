-- What stands in the first schema of the search_path, a line for each column, index, function and type; the
-- order of columns does not count, nor indexes that are the user's own.
select format('%s.%s %s %s%s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
    (select l.collname from pg_collation l where l.oid = a.attcollation),
    case when a.attnotnull then ' not null' end,
    (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d
     where d.adrelid = a.attrelid and d.adnum = a.attnum))
from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'c')
union all
select format('%s %s %s', c.relname, i.indexrelid::regclass, pg_get_indexdef(i.indexrelid))
from pg_class c join pg_index i on i.indrelid = c.oid
where c.relnamespace = current_schema()::regnamespace and i.indexrelid::regclass::text <> 'my_own'
union all
select format('%s %s', c.relname, array(select unnest(c.reloptions) order by 1))
from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
union all
select p.oid::regprocedure::text from pg_proc p where p.pronamespace = current_schema()::regnamespace
order by 1
