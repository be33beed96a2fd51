-- The partition of a table that has this name now, and its bound as the server writes it.
SELECT c.oid::bigint, pg_get_expr(c.relpartbound, c.oid)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE n.nspname = %(schema)s AND c.relname = %(name)s AND i.inhparent = %(parent)s
