-- The transaction that has written for the longest time, prepared ones included: who has it, and since when.
SELECT who || ' of ' || to_char(since, 'YYYY-MM-DD HH24:MI:SS') || '+00'
FROM (
    SELECT 'the session with pid ' || pid::text AS who, xact_start AS since
    FROM pg_stat_activity WHERE backend_xid IS NOT NULL
    UNION ALL
    SELECT 'the prepared transaction ' || transaction::text || ' (pg_prepared_xacts)', prepared FROM pg_prepared_xacts
) t
ORDER BY since
LIMIT 1
