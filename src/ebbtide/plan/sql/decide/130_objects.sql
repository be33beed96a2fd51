-- Every object with its verdict. Marks of what no longer is: history, partitions and tables wait for the proof that their
-- files are gone, the rest is sent back. Nobody knows the days of what is gone: any hold on its dataset keeps what is left.
CREATE TEMP TABLE judged_objects AS
WITH found AS (
    SELECT did, 'transactions' AS target, tid AS object_id, branches, owner_t AS policy, fingerprint,
           NULL::VARCHAR AS cutoff, t_decision AS decision, t_because AS because, t_waits AS waits_for,
           t_protected AS protected_by, list_transform(leaves, lambda name: substr(name, 8)) AS drops_from
    FROM timeline WHERE t_exists
    UNION ALL
    SELECT did, 'versions', tid, branches, owner_v, fingerprint, NULL, v_decision, v_because, v_waits, v_protected, []
    FROM timeline WHERE v_exists
    UNION ALL
    SELECT did, 'partitions', object_id, ['main'], owner, fingerprint, NULL, decision, because, waits_for, protected_by,
           only_if(in_head, ['main']) FROM partition_objects
    UNION ALL
    SELECT did, 'rows', object_id, ['main'], owner, fingerprint, cutoff, decision, because, waits_for, protected_by, []
    FROM row_objects
    UNION ALL
    SELECT did, 'orphans', object_id, [], owner, fingerprint, cutoff, decision, because, waits_for, protected_by, []
    FROM orphan_objects
    UNION ALL
    SELECT did, 'branches', object_id, [object_id], owner, fingerprint, NULL, decision, because, waits_for, protected_by, []
    FROM branch_objects
    UNION ALL
    SELECT did, 'tables', object_id, branches, owner, fingerprint, NULL, decision, because, waits_for, protected_by, []
    FROM table_objects
)
SELECT d.table_id, found.* FROM found JOIN datasets d USING (did)
UNION ALL
SELECT table_id, NULL, 'chunks', object_id, [], NULL, fingerprint, NULL, decision, because, waits_for, protected_by, []
FROM chunk_objects
UNION ALL
SELECT m.table_id, m.did, m.target, m.object_id, [], NULL, m.mark.fingerprint, m.mark.cutoff,
       CASE WHEN m.target IN ('transactions', 'versions', 'partitions', 'tables') THEN 'wait' ELSE 'unmarked' END,
       CASE WHEN m.target IN ('transactions', 'versions', 'partitions', 'tables') 
            THEN said('not_listed', 'it is no longer in the inventory')
            ELSE said('unselected', 'unmarked: no policy selects it any more, or it is gone') END,
       CASE WHEN m.target NOT IN ('transactions', 'versions', 'partitions', 'tables') THEN []
            WHEN h.holds IS NOT NULL THEN list_transform(list_sort(h.holds, 'ASC', 'NULLS FIRST'), lambda hold: hold.text)
            ELSE list_concat([proof()], unread) END,
       [], []
FROM marks m CROSS JOIN moment LEFT JOIN held h USING (table_id)
WHERE NOT EXISTS (SELECT 1 FROM found
                  WHERE found.did = m.did AND found.target = m.target AND found.object_id = m.object_id);

-- What is ready and would take files waits while somebody may reference them whom nobody could read (spec §7). What
-- leaves a head first may do so: that is metadata. Formats whose own operations commit and remove in one are deferred
-- whole.
CREATE TEMP TABLE unread_waits AS
SELECT o.table_id, o.did, o.target, o.object_id, unread AS waits
FROM judged_objects o CROSS JOIN moment LEFT JOIN datasets d USING (did)
WHERE o.decision = 'ready' AND len(unread) > 0
  AND NOT ((len(o.drops_from) > 0 OR o.target IN ('rows', 'branches')) AND coalesce(d.any_order, false));

-- `ready` becomes `wait` where something still references the object's files, else `sweep`.
CREATE TEMP TABLE objects AS
WITH waits AS (
    SELECT did, target, object_id, joined(flatten(list(waits))) AS waits FROM (
        SELECT did, target, object_id, waits FROM transaction_waits
        UNION ALL SELECT did, target, object_id, waits FROM own_version_waits
        UNION ALL SELECT did, target, object_id, waits FROM oldest_first_waits
        UNION ALL SELECT did, target, object_id, waits FROM partition_waits
        UNION ALL SELECT did, target, object_id, waits FROM row_waits
        UNION ALL SELECT did, target, object_id, waits FROM unread_waits
    ) GROUP BY did, target, object_id
)
SELECT o.* EXCLUDE (decision, waits_for),
       CASE WHEN o.decision <> 'ready' THEN o.decision WHEN len(texts(w.waits)) > 0 THEN 'wait' ELSE 'sweep' END AS decision,
       CASE WHEN o.decision = 'ready' AND len(texts(w.waits)) > 0 THEN w.waits ELSE o.waits_for END AS waits_for
FROM judged_objects o
LEFT JOIN waits w ON w.did = o.did AND w.target = o.target AND w.object_id = o.object_id;
