-- What changes when somebody touches a fence or rewrites the rows behind it.
SELECT string_agg(
           t.tgname || ':' || t.tgenabled::text || ':' || t.oid::text || ':' || t.xmin::text, ',' ORDER BY t.tgname
       ) || ' ' || pg_relation_filenode(%(oid)s)::text,
       count(*) = 2 AND bool_and(t.tgenabled = 'A')
FROM pg_trigger t
WHERE t.tgrelid = %(oid)s AND t.tgname IN ('ebbtide_fence', 'ebbtide_fence_t')
