-- One row a reason why a plain table cannot become a partition of a table that takes its name.
WITH t AS (
    SELECT * FROM pg_class WHERE oid = %(oid)s
), at AS (
    SELECT attnum FROM pg_attribute WHERE attrelid = %(oid)s AND attname = %(time)s
)
SELECT 'it is unlogged or temporary: its rows are not in the log' FROM t WHERE relpersistence <> 'p'
UNION ALL
SELECT 'it has rules' FROM t WHERE EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = t.oid)
UNION ALL
SELECT 'it has row-level security' FROM t WHERE relrowsecurity
UNION ALL
SELECT 'it is part of an inheritance' FROM t
WHERE EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = t.oid OR i.inhrelid = t.oid)
UNION ALL
SELECT format('the foreign key %%I points to it: a chunk could not be dropped', conname) FROM pg_constraint
WHERE confrelid = %(oid)s AND contype = 'f'
UNION ALL
SELECT format('the constraint %%I cannot be one of a partitioned table', conname) FROM pg_constraint
WHERE conrelid = %(oid)s AND contype = 'x'
UNION ALL
SELECT format('the unique index %%I does not hold %%I', c.relname, %(time)s::text)
FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
WHERE x.indrelid = %(oid)s AND x.indisunique
  AND NOT (SELECT attnum FROM at) = ANY (x.indkey::int2[])
UNION ALL
SELECT format('the index %%I is not valid', c.relname)
FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE x.indrelid = %(oid)s AND NOT x.indisvalid
UNION ALL
SELECT format('the trigger %%I has transition tables for each row', tgname) FROM pg_trigger
WHERE tgrelid = %(oid)s AND NOT tgisinternal AND tgtype & 1 = 1 AND (tgoldtable IS NOT NULL OR tgnewtable IS NOT NULL)
UNION ALL
-- What reads it by its oid would go on reading the old table alone.
SELECT DISTINCT format('the view %%I reads it: make it again afterwards', v.relname)
FROM pg_depend d JOIN pg_rewrite r ON r.oid = d.objid JOIN pg_class v ON v.oid = r.ev_class
WHERE d.classid = 'pg_rewrite'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = %(oid)s
  AND v.oid <> %(oid)s
UNION ALL
SELECT DISTINCT format('the function %%I reads it: make it again afterwards', p.proname)
FROM pg_depend d JOIN pg_proc p ON p.oid = d.objid
WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = %(oid)s
UNION ALL
SELECT format('the publication %%I has only some rows or columns of it', p.pubname)
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
WHERE r.prrelid = %(oid)s AND coalesce(to_jsonb(r) ->> 'prqual', to_jsonb(r) ->> 'prattrs') IS NOT NULL
UNION ALL
SELECT format('the publication %%I would have its partitions under their own names: run ALTER PUBLICATION %%I'
              ' SET (publish_via_partition_root = true) first', p.pubname, p.pubname)
FROM pg_publication p
JOIN pg_publication_tables e ON e.pubname = p.pubname
JOIN pg_namespace n ON n.nspname = e.schemaname
JOIN t ON t.relnamespace = n.oid AND t.relname = e.tablename
WHERE NOT p.pubviaroot
UNION ALL
SELECT format('there is a table %%I already', %(before)s::text)
FROM t WHERE EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = t.relnamespace AND c.relname = %(before)s)
ORDER BY 1
