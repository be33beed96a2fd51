-- The files that each object names: every one of them is in the plan before it goes (spec §2). A file that something
-- still reads is not named.
CREATE TEMP TABLE named AS
WITH found AS (
    SELECT h.did, h.target, h.object_id, f.fid, f.path, f.role, f.bytes,
           CASE WHEN f.role = 'data' THEN f.rows END AS rows, NULL::BIGINT AS modified, h.decision
    FROM history_files h JOIN f USING (fid)
    UNION ALL
    -- What leaves the heads with transactions of the latest view. Versions between still reference the files: the object
    -- waits for those after its commit, and they do not make it smaller.
    SELECT t.did, 'transactions', t.tid, f.fid, f.path, f.role, f.bytes, CASE WHEN f.role = 'data' THEN f.rows END, NULL,
           t.t_decision
    FROM timeline t JOIN f ON f.did = t.did AND f.adder = t.tid
    WHERE len(t.leaves) > 0 AND t.t_going IS NOT NULL AND f.fid NOT IN (SELECT fid FROM sharing)
      AND is_content(f.role)
    UNION ALL
    SELECT p.did, 'partitions', p.object_id, f.fid, f.path, f.role, f.bytes, CASE WHEN f.role = 'data' THEN f.rows END, NULL,
           p.decision
    FROM partition_files p JOIN f USING (fid) LEFT JOIN partition_waits w ON w.did = p.did AND w.object_id = p.object_id
    WHERE len(p.stay) = 0 AND len(texts(w.waits)) = 0
    UNION ALL
    SELECT f.did, 'tables', t.object_id, f.fid, f.path, f.role, f.bytes, f.rows, NULL, t.decision
    FROM table_objects t JOIN f USING (did) WHERE is_going(t.decision)
    UNION ALL
    SELECT o.did, 'orphans', o.object_id, NULL, o.path, NULL, o.bytes, NULL, o.instant, g.decision
    FROM orphan_files o JOIN orphan_objects g ON g.did = o.did AND g.object_id = o.object_id
    WHERE o.old AND is_going(g.decision)
)
SELECT found.*, CASE WHEN decision = 'mark' THEN 'mark' WHEN decision = 'ready' THEN 'sweep' END AS verb
FROM found ANTI JOIN unread_waits USING (did, target, object_id);
