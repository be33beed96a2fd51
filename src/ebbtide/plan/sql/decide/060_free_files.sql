-- Which files go when what is to go has gone: reachability over the retained versions (spec §2, "A sweep removes").
-- A position is kept while its transaction is not to go, or a branch or tag names it. A run of positions is free when
-- the next kept position lies behind it; a file is free when all of its runs are, and no other dataset references it.
-- Twice: `later`, with everything that is marked or will be, and `now`, with what is past its grace.
-- An expired version keeps nothing: what it referenced is gone in part already.
CREATE TEMP TABLE kept AS
WITH going AS (
    SELECT did, tid, position, expired, pinned, t_going IS NOT NULL OR v_going IS NOT NULL AS goes_later,
           (t_ready AND expires) OR v_ready AS goes_now
    FROM timeline
), next AS (
    SELECT did, tid, position,
           min(CASE WHEN (NOT goes_later AND NOT expired) OR pinned THEN position END) OVER from_here AS later,
           min(CASE WHEN (NOT goes_now AND NOT expired) OR pinned THEN position END) OVER from_here AS now
    FROM going
    WINDOW from_here AS (PARTITION BY did ORDER BY position ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
)
SELECT n.did, n.position, n.later, n.now, k.tid AS now_id
FROM next n LEFT JOIN next k ON k.did = n.did AND k.position = n.now;

CREATE TEMP TABLE free AS
SELECT r.fid, bool_and(k.now IS NULL OR k.now > r.last) AS now
FROM runs r JOIN kept k ON k.did = r.did AND k.position = r.first
WHERE k.later IS NULL OR k.later > r.last
GROUP BY r.fid
HAVING count(*) = (SELECT len(f.versions) FROM f WHERE f.fid = r.fid) AND r.fid NOT IN (SELECT fid FROM sharing);

-- The last version that is there and references the file: in its last run nearly always; where all of that one expired,
-- in one before it.
CREATE TEMP TABLE holders AS
WITH there AS (
    SELECT did, position,
           max(CASE WHEN NOT expired THEN position END) OVER (PARTITION BY did ORDER BY position) AS holder
    FROM timeline
)
SELECT r.fid, max(t.holder) AS holder
FROM free JOIN runs r USING (fid) JOIN there t ON t.did = r.did AND t.position = r.last
WHERE t.holder >= r.first GROUP BY r.fid;

-- Free files under the transaction that added them and under the last version that references them. Where neither of
-- them goes as such, the file is named by the transaction whose version is the last to reference it: no file goes that
-- no object names, and none that is free now is left behind because who names it waits.
CREATE TEMP TABLE history_files AS
WITH around AS (
    SELECT f.fid, f.did, free.now, f.adder, a.t_going AS as_adder, a.v_going AS adders_version,
           l.tid AS last_id, l.t_going AS as_last, l.v_going AS as_version
    FROM free JOIN f USING (fid)
    LEFT JOIN timeline a ON a.did = f.did AND a.tid = f.adder AND len(a.leaves) = 0 AND a.t_going IS NOT NULL
    LEFT JOIN holders h USING (fid)
    LEFT JOIN timeline l ON l.did = f.did AND l.position = h.holder
), named AS (
    -- Its adder may be in its grace, or wait for another file of its own, while the versions target takes its version.
    SELECT *, (as_adder IS NULL AND as_version IS NULL AND as_last IS NOT NULL)
              OR (now AND coalesce(as_last = 'ready', false) AND NOT coalesce(as_version = 'ready', false)
                  AND (NOT coalesce(as_adder = 'ready', false) OR coalesce(adders_version = 'ready', false))) AS by_last
    FROM around
)
SELECT fid, did, 'transactions' AS target, adder AS object_id, as_adder AS decision
FROM named WHERE as_adder IS NOT NULL AND (as_adder <> 'ready' OR now)
UNION ALL
SELECT fid, did, 'versions', last_id, as_version FROM named WHERE as_version IS NOT NULL AND (as_version <> 'ready' OR now)
UNION ALL
SELECT fid, did, 'transactions', last_id, as_last FROM named
WHERE by_last AND NOT (as_adder IS NOT NULL AND adder IS NOT DISTINCT FROM last_id) AND (as_last <> 'ready' OR now);
