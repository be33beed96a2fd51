-- What leaves which head: rows and bytes that nobody reads there any more, whoever keeps the files (hazard 36). `counts`
-- says whether that is a loss of its own: what goes with a dropped branch and another head has can still be read there,
-- and a table that goes whole is counted by what is freed.
CREATE TEMP TABLE branch_files AS
WITH together AS (
    -- Branches that go at the same time lose together what only they have.
    SELECT did, list('branch:' || object_id) AS later, list('branch:' || object_id) FILTER (decision = 'ready') AS now
    FROM branch_objects WHERE is_going(decision) GROUP BY did
)
SELECT b.did, b.object_id, b.decision, f.fid, f.bytes,
       list_filter(n.names, lambda name: name <> 'branch:' || b.object_id) AS stay,
       len(list_filter(n.names, lambda name: starts_with(name, 'branch:') AND NOT list_contains(
           CASE WHEN b.decision = 'ready' THEN t.now ELSE t.later END, name))) = 0 AS lost
FROM branch_objects b JOIN together t USING (did) JOIN f USING (did) JOIN file_names n USING (fid)
WHERE is_going(b.decision) AND f.live AND is_held_by_head(f.role)
  AND list_contains(n.names, 'branch:' || b.object_id);

CREATE TEMP TABLE leaving AS
WITH heads AS (
    SELECT f.fid, f.did, list_filter(names, lambda name: starts_with(name, 'branch:')) AS heads
    FROM f JOIN file_names USING (fid) WHERE is_held_by_head(f.role)
), gone AS (
    SELECT p.did, 'partitions' AS target, p.object_id, 'main' AS branch, p.fid, p.decision, true AS counts
    FROM partition_files p WHERE p.in_head AND is_held_by_head(p.role)
    UNION ALL
    SELECT did, target, object_id, substr(head, 8), fid, decision, true FROM (
        SELECT t.did, 'transactions' AS target, t.tid AS object_id, f.fid, t.t_decision AS decision,
               unnest(list_filter(t.leaves, lambda name: list_contains(h.heads, name))) AS head
        FROM timeline t JOIN f ON f.did = t.did AND f.adder = t.tid JOIN heads h USING (fid)
        WHERE len(t.leaves) > 0 AND t.t_going IS NOT NULL)
    UNION ALL
    SELECT did, 'branches', object_id, object_id, fid, decision, lost FROM branch_files
    UNION ALL
    SELECT did, target, object_id, substr(head, 8), fid, decision, false FROM (
        SELECT t.did, 'tables' AS target, t.object_id, f.fid, t.decision, unnest(h.heads) AS head
        FROM table_objects t JOIN f USING (did) JOIN heads h USING (fid) WHERE is_going(t.decision) AND f.live)
)
SELECT gone.*, f.bytes, CASE WHEN f.role = 'data' THEN f.rows END AS rows,
       CASE WHEN decision = 'mark' THEN 'mark' WHEN decision = 'ready' THEN 'sweep' END AS verb
FROM gone JOIN f USING (fid);

-- Per object the branches that it leaves; rows are NULL where nobody knows them.
CREATE TEMP TABLE leaves AS
SELECT did, target, object_id, list({'branch': branch, 'bytes': bytes, 'rows': rows} ORDER BY branch) AS leaves
FROM (SELECT did, target, object_id, branch, sum(bytes)::BIGINT AS bytes,
             CASE WHEN bool_and(rows IS NOT NULL) THEN sum(rows)::BIGINT END AS rows
      FROM leaving GROUP BY did, target, object_id, branch)
GROUP BY did, target, object_id;

-- Per object that goes, the bytes that a branch, a tag, a staged snapshot or another dataset keeps.
CREATE TEMP TABLE kept_by AS
WITH kept_files AS (
    SELECT did, 'partitions' AS target, object_id, bytes, unnest(stay) AS name FROM partition_files
    UNION ALL
    SELECT did, 'branches', object_id, bytes, unnest(stay) FROM branch_files
)
SELECT did, target, object_id, list({'name': name, 'bytes': bytes} ORDER BY name) AS kept_by
FROM (SELECT did, target, object_id, name, sum(bytes)::BIGINT AS bytes FROM kept_files GROUP BY ALL)
GROUP BY did, target, object_id;
