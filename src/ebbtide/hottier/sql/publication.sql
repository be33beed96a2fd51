-- What a publication publishes, and whether that is everything of the table: a filter or a missing kind is a gap.
SELECT p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND NOT p.pubviaroot,
       EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = %(oid)s),
       EXISTS (
           SELECT FROM pg_publication_rel r
           WHERE r.prpubid = p.oid
             AND (to_jsonb(r) ->> 'prqual' IS NOT NULL OR to_jsonb(r) ->> 'prattrs' IS NOT NULL)
       ),
       ARRAY(SELECT r.prrelid::bigint FROM pg_publication_rel r WHERE r.prpubid = p.oid)
FROM pg_publication p
WHERE p.pubname = %(name)s
