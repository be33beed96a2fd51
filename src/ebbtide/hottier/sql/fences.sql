-- One row a partition of a table that has a fence, or what is left of one: the triggers that keep writers out.
SELECT n.nspname::text, c.relname::text,
       coalesce(array_agg(g.tgname::text ORDER BY g.tgname) FILTER (WHERE g.tgenabled <> 'D'), '{}')
FROM pg_class p
JOIN pg_namespace s ON s.oid = p.relnamespace
JOIN pg_inherits i ON i.inhparent = p.oid
JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_trigger g ON g.tgrelid = c.oid AND g.tgname IN ('ebbtide_fence', 'ebbtide_fence_t')
WHERE s.nspname = %(schema)s AND p.relname = %(name)s
GROUP BY 1, 2
ORDER BY 1, 2
