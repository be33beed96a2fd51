-- The view `retention`: which policy owns the objects of a table on the main branch, target by target (spec §3).
CREATE TEMP TABLE retention_view AS
WITH owned AS (
    SELECT table_id, unnest([
        {'target': 'transactions', 'numbers': for_transactions}, {'target': 'versions', 'numbers': for_versions},
        {'target': 'partitions', 'numbers': for_partitions}, {'target': 'rows', 'numbers': for_rows},
        {'target': 'orphans', 'numbers': for_orphans}, {'target': 'branches', 'numbers': for_branches},
        {'target': 'tables', 'numbers': for_tables}]) AS owned
    FROM datasets WHERE NOT former
)
SELECT o.table_id, t.* EXCLUDE (number)
FROM owned o CROSS JOIN refused_on_main r
JOIN terms t ON t.target = o.owned.target
    AND t.number = list_filter(o.owned.numbers, lambda n: NOT list_contains(r.refused, n))[1];
