-- Versions that go under the mark of something that a sweep has deleted already: those that have files of such a
-- partition, and those from before a delete of rows (spec §2, "Then versions, under the same mark").
CREATE TEMP TABLE taken_along AS
SELECT DISTINCT tx.did, tx.tid
FROM (SELECT DISTINCT r.did, r.first, r.last FROM partition_files p JOIN runs r USING (fid)
      WHERE NOT p.in_head AND p.decision = 'ready') gone
JOIN tx ON tx.did = gone.did AND tx.position BETWEEN gone.first AND gone.last
UNION
SELECT tx.did, tx.tid
FROM (SELECT did, max(mark.acted_us) AS acted FROM marks
      WHERE target = 'rows' AND mark.acted_us IS NOT NULL AND did IS NOT NULL GROUP BY did) rows_
JOIN tx ON tx.did = rows_.did AND tx.instant < rows_.acted;

-- Versions and transactions that have files of days that a hold covers; unknown days are covered.
CREATE TEMP TABLE held_versions AS
WITH ranged AS (
    SELECT did, table_id, holds FROM facts
    WHERE len(list_filter(holds, lambda h: h.first IS NOT NULL OR h.last IS NOT NULL)) > 0
), dated AS (
    SELECT f.fid, f.did, d.holds,
           CASE WHEN c.did IS NOT NULL THEN c.first_day ELSE s.first_day END AS first_day,
           CASE WHEN c.did IS NOT NULL THEN c.last_day ELSE s.last_day END AS last_day
    FROM f JOIN ranged d USING (did)
    LEFT JOIN covered c ON c.did = f.did AND c.partition = f.partition
    LEFT JOIN in_marked_days s ON s.table_id = d.table_id AND s.partition = f.partition
    WHERE is_content(f.role) OR is_of_partition(f.role)
), covering AS (
    SELECT fid, did, joined(list_transform(
        list_filter(holds, lambda h: coalesce(h.first <= last_day, true) AND coalesce(first_day <= h.last, true)),
        lambda h: h.text)) AS texts_ FROM dated
), held_runs AS (
    SELECT DISTINCT r.did, r.first, r.last, c.texts_ FROM covering c JOIN runs r USING (fid) WHERE len(c.texts_) > 0
)
SELECT tx.did, tx.tid, joined(flatten(list(h.texts_))) AS texts_
FROM held_runs h JOIN tx ON tx.did = h.did AND tx.position BETWEEN h.first AND h.last GROUP BY tx.did, tx.tid;
