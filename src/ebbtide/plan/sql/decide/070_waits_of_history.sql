-- What ready transactions wait for: versions, changelogs and datasets that reference a file that they added. While a
-- head still has to give them up there is a commit to make: nothing to wait for yet.
CREATE TEMP TABLE transaction_waits AS
WITH theirs AS (
    SELECT t.did, t.tid, t.leaves, t.expires, f.fid FROM timeline t JOIN f ON f.did = t.did AND f.adder = t.tid
    WHERE t.t_ready AND is_content(f.role)
)
SELECT t.did, 'transactions' AS target, t.tid AS object_id,
       CASE WHEN bool_or(len(t.leaves) > 0) THEN []::VARCHAR[]
            ELSE joined(flatten(list(list_concat(
                -- The changelog that is to keep a file comes from the expiry of its version, and is an object of its own then.
                CASE WHEN is_beside(r.first) THEN only_if(NOT t.expires, [changelog()])
                     WHEN coalesce(k.now <= r.last, false) THEN ['version:' || k.now_id]
                     ELSE []::VARCHAR[] END,
                texts(s.others))))) END AS waits
FROM theirs t JOIN runs r USING (fid) LEFT JOIN kept k ON k.did = r.did AND k.position = r.first
LEFT JOIN sharing s USING (fid)
GROUP BY t.did, t.tid;

-- What left the heads and is to be expired by another target waits for that, also where it added no file itself.
CREATE TEMP TABLE own_version_waits AS
SELECT did, 'transactions' AS target, tid AS object_id, ['version:' || tid] AS waits
FROM timeline WHERE t_ready AND len(leaves) = 0 AND NOT expires AND NOT v_ready;

-- Where removal is oldest first: the oldest kept version before it. A version that only tags keep is passed: Paimon's
-- tags hold its content themselves, and Hudi's cleaner leaves the files of savepoints where they are. Where no policy
-- looks at versions, its transaction says what keeps it, which may also be a tag after it, or one in another branch's
-- folder: Paimon passes only what a tag of the line names. A savepoint cannot be read after a clean (formats.md), so
-- without a policy on versions Hudi's are not passed.
CREATE TEMP TABLE oldest_first_waits AS
WITH lines AS (
    SELECT *, regexp_extract(tid, '(?s)^(.*)/', 1) AS line FROM timeline WHERE NOT any_order
), tagged AS (
    SELECT l.did, l.tid, bool_or(CASE WHEN l.line = 'main'
                                      THEN starts_with(r.name, 'tag:') AND NOT contains(r.name, '/')
                                      ELSE starts_with(r.name, 'tag:' || l.line || '/') END) AS by_its_line
    FROM lines l JOIN refs r ON r.did = l.did AND r.tid = l.tid GROUP BY l.did, l.tid
), passed AS (
    SELECT l.*, t_ready OR v_ready AS ready,
           CASE WHEN v_exists
                THEN v_decision = 'keep' AND len(v_protected) > 0
                     AND len(list_filter(v_protected, lambda name: NOT starts_with(name, 'tag:'))) = 0
                ELSE t_exists AND t_decision = 'keep' AND len(t_protected) > 0
                     AND len(list_filter(t_protected, lambda name: NOT starts_with(name, 'tag:'))) = 0
                     AND coalesce(g.by_its_line, false) AND format = 'paimon' END AS only_tags
    FROM lines l LEFT JOIN tagged g ON g.did = l.did AND g.tid = l.tid
), oldest AS (
    SELECT did, tid, ready, first_value(CASE WHEN NOT ready AND NOT expired AND NOT only_tags THEN tid END IGNORE NULLS)
               OVER (PARTITION BY did, line ORDER BY position ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS blocker
    FROM passed
)
SELECT did, unnest(['transactions', 'versions']) AS target, tid AS object_id, ['oldest first:' || blocker] AS waits
FROM oldest WHERE ready AND blocker IS NOT NULL;
