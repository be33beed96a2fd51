-- Transactions by number of their dataset, and who names which of them: branches, tags and staged snapshots (spec §1).
CREATE TEMP TABLE tx AS
SELECT d.did, t.transaction_id AS tid, t.parent_id, t.position, t.kind, epoch_us(t.committed_at) AS instant,
       coalesce(t.starts_view, false) AS starts_view, coalesce(t.staged, false) AS staged,
       coalesce(t.expired, false) AS expired, texts(t.branches) AS branches, texts(t.in_views_of) AS in_views_of
FROM in_transactions t JOIN datasets d USING (table_id) WHERE NOT d.former;

-- A head that is not among the retained transactions has no position: its dataset is blocked.
CREATE TEMP TABLE refs AS
SELECT d.did, concat_ws(':', b.kind, b.name) AS name, b.head AS tid, t.position
FROM in_branches b JOIN datasets d USING (table_id) LEFT JOIN tx t ON t.did = d.did AND t.tid = b.head
WHERE b.head IS NOT NULL AND NOT d.former
UNION ALL
SELECT did, 'staged:' || tid, tid, position FROM tx WHERE staged;

-- What names a transaction: `pinned` where it is more than staging.
CREATE TEMP TABLE named_versions AS
SELECT did, tid, list(CASE WHEN starts_with(name, 'staged:') THEN staged() ELSE name END) AS names,
       bool_or(starts_with(name, 'branch:')) AS is_head, bool_or(NOT starts_with(name, 'staged:')) AS pinned
FROM refs GROUP BY did, tid;
