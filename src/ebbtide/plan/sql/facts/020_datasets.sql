-- One row a dataset, with the policies that select it, target by target, in order: the first of a target owns (spec §2).
-- `former` are owners of files that are no datasets any more.
CREATE TEMP TABLE datasets AS
WITH chosen AS (
    SELECT table_id,
           list(number ORDER BY number) AS chosen,
           list(number ORDER BY number) FILTER (list_contains(targets, 'transactions')) AS for_transactions,
           list(number ORDER BY number) FILTER (list_contains(targets, 'versions')) AS for_versions,
           list(number ORDER BY number) FILTER (list_contains(targets, 'partitions')) AS for_partitions,
           list(number ORDER BY number) FILTER (list_contains(targets, 'rows')) AS for_rows,
           list(number ORDER BY number) FILTER (list_contains(targets, 'orphans')) AS for_orphans,
           list(number ORDER BY number) FILTER (list_contains(targets, 'branches')) AS for_branches,
           list(number ORDER BY number) FILTER (list_contains(targets, 'tables')) AS for_tables
    FROM selected JOIN policies USING (number) GROUP BY table_id
), statutes AS (
    SELECT table_id, list(number ORDER BY number) AS floor_numbers,
           list({'text': 'floor:' || label, 'months': months, 'micros': micros, 'days': days,
                           'first_day': first_day} ORDER BY number) AS statutes
    FROM selected_floors JOIN statutory USING (number) GROUP BY table_id
)
SELECT row_number() OVER (ORDER BY t.former, t.table_id)::INTEGER AS did,
       t.table_id, t.former, t.format, t.schedule, t.time_grain, t.covers, t.date_column, t.date_by, t.date_doubt,
       t.partitioned, coalesce(t.identity, '') AS identity, t.floors, t.scan_error, t.unknown, t.locked_by,
       texts(t.own_labels) AS own_labels,
       list_contains(texts(t.capabilities), 'remove versions in any order') AS any_order,
       list_contains(texts(t.capabilities), 'drop exact data files') AS can_drop,
       coalesce(c.chosen, []) AS chosen,
       coalesce(c.for_transactions, []) AS for_transactions,
       coalesce(c.for_versions, []) AS for_versions,
       coalesce(c.for_partitions, []) AS for_partitions,
       coalesce(c.for_rows, []) AS for_rows,
       coalesce(c.for_orphans, []) AS for_orphans,
       coalesce(c.for_branches, []) AS for_branches,
       coalesce(c.for_tables, []) AS for_tables,
       coalesce(s.floor_numbers, []) AS floor_numbers, coalesce(s.statutes, []) AS statutes
FROM in_tables t LEFT JOIN chosen c USING (table_id) LEFT JOIN statutes s USING (table_id);
