-- One row a reason why a table and its leaves cannot be tiered; some only where they are mirrored and proven.
WITH part AS (
    SELECT r.*, t.isleaf, t.level
    FROM pg_partition_tree(%(oid)s) t JOIN pg_class r ON r.oid = t.relid
    WHERE NOT EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = r.oid AND g.tgname = 'ebbtide_gone')
)
SELECT format('%%I', relname), 'is unlogged or temporary: its rows are not in the log' FROM part
WHERE relpersistence <> 'p'
UNION ALL
SELECT format('%%I', relname), 'is a foreign table' FROM part WHERE relkind = 'f'
UNION ALL
SELECT format('%%I', relname), 'is partitioned once more' FROM part WHERE relkind = 'p' AND level > 0
UNION ALL
SELECT format('%%I', relname), 'is a default partition: rows would lie in no chunk' FROM part
WHERE pg_get_expr(relpartbound, oid) = 'DEFAULT'
UNION ALL
SELECT format('%%I', relname), 'is being detached' FROM part
WHERE EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = part.oid AND i.inhdetachpending)
UNION ALL
SELECT format('%%I', relname), 'has no primary key or replica identity: updates and deletes could not be followed' FROM part
WHERE %(synced)s AND isleaf AND NOT EXISTS (
    SELECT FROM pg_index x
    WHERE x.indrelid = part.oid AND x.indisvalid AND x.indimmediate AND x.indisprimary AND relreplident IN ('d', 'f')
)
UNION ALL
SELECT format('%%I', relname), 'has row-level security: not every row would be seen' FROM part WHERE relrowsecurity
UNION ALL
SELECT format('%%I', relname), 'has rules' FROM part WHERE relhasrules
UNION ALL
SELECT format('%%I', relname), 'is what a foreign key points to: a chunk of it cannot be dropped' FROM part
WHERE EXISTS (SELECT FROM pg_constraint k WHERE k.confrelid = part.oid AND k.contype = 'f')
ORDER BY 1, 2
