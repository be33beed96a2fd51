-- One row a partition of a table, tombstones included, with its bounds as the server writes them.
SELECT c.oid::bigint, n.nspname::text, c.relname::text, pg_get_expr(c.relpartbound, c.oid),
       EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgname = 'ebbtide_gone')
FROM pg_inherits i
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE i.inhparent = %(oid)s
ORDER BY c.relname
