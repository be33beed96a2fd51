-- What a mark remembers of what is to go: history tells of it once it is no longer there, and the days of a partition
-- are known to holds on ranges.
CREATE TEMP TABLE history_facts AS
SELECT t.table_id, t.transaction_id, list(DISTINCT p.decision) AS decisions, t.parent_id, t.branches, t.kind, t.committed_at,
       t.operation, t.staged, t.rows_added, t.rows_removed, t.files_added, t.files_removed, t.bytes_added, t.bytes_removed
FROM planned p JOIN in_transactions t ON t.table_id = p.dataset AND t.transaction_id = p.object
WHERE p.target IN ('transactions', 'versions') AND p.decision IN ('mark', 'sweep')
GROUP BY ALL;

CREATE TEMP TABLE days_to_mark AS
SELECT d.table_id, c.partition, c.first_day, c.last_day
FROM planned p JOIN datasets d ON d.table_id = p.dataset JOIN covered c ON c.did = d.did AND c.partition = p.object
WHERE p.target = 'partitions' AND p.decision = 'mark' AND c.first_day IS NOT NULL AND c.last_day IS NOT NULL;
