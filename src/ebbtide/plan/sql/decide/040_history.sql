-- What is known of each transaction of the datasets that a policy on transactions or versions, or a mark, concerns.
CREATE TEMP TABLE concerned AS
SELECT did FROM facts WHERE NOT former AND (len(for_transactions) > 0 OR len(for_versions) > 0)
UNION
SELECT did FROM marks WHERE target IN ('transactions', 'versions') AND did IS NOT NULL;

CREATE TEMP TABLE history AS SELECT * FROM tx WHERE did IN (SELECT did FROM concerned);

-- When a child took its place, on a branch if any child is on one; for what no branch reaches, when the next came.
CREATE TEMP TABLE superseded AS
WITH child AS (
    SELECT did, parent_id AS tid, coalesce(max(instant) FILTER (len(branches) > 0), max(instant)) AS instant
    FROM history WHERE parent_id IS NOT NULL GROUP BY did, parent_id
), next AS (
    SELECT did, tid, branches, lead(instant) OVER (PARTITION BY did ORDER BY instant NULLS FIRST, position) AS instant
    FROM history WHERE did IN (SELECT did FROM history WHERE len(branches) = 0)
)
SELECT h.did, h.tid, coalesce(child.instant, CASE WHEN len(h.branches) = 0 THEN coalesce(next.instant, h.instant) END) AS instant
FROM history h
LEFT JOIN child ON child.did = h.did AND child.tid = h.tid
LEFT JOIN next ON next.did = h.did AND next.tid = h.tid AND len(next.branches) = 0
LEFT JOIN named_versions n ON n.did = h.did AND n.tid = h.tid
WHERE NOT coalesce(n.is_head, false);

-- Places on the branches, newest first, for the datasets whose policies or floors count versions or views.
CREATE TEMP TABLE places AS
WITH counting AS (
    SELECT did FROM facts
    WHERE len(floor_counts) > 0 OR (format = 'paimon' AND len(for_versions) > 0)
       OR list_has_any(chosen, (SELECT coalesce(list(number), []) FROM policies WHERE counts_places))
), each AS (
    SELECT did, tid, position, starts_view, unnest(branches) AS branch
    FROM history WHERE did IN (SELECT did FROM counting)
), ranked AS (
    SELECT did, tid, branch, row_number() OVER newest_first AS rank,
           coalesce(sum(starts_view::INTEGER) OVER (newest_first ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
               AS views_after
    FROM each WINDOW newest_first AS (PARTITION BY did, branch ORDER BY position DESC)
)
SELECT did, tid, list({'branch': branch, 'rank': rank, 'views_after': views_after}) AS places
FROM ranked GROUP BY did, tid;

-- Who references a file that the transaction added: heads, tags, staged snapshots, other datasets (spec §1).
CREATE TEMP TABLE referenced AS
SELECT f.did, f.adder AS tid, list_distinct(flatten(list(list_concat(texts(n.names), texts(s.others))))) AS names
FROM f LEFT JOIN file_names n USING (fid) LEFT JOIN sharing s USING (fid)
WHERE is_content(f.role)
  AND f.adder IS NOT NULL AND f.did IN (SELECT did FROM concerned)
  AND (n.names IS NOT NULL OR s.others IS NOT NULL)
GROUP BY f.did, f.adder;
