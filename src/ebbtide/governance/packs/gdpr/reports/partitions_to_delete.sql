-- The partitions that are past the retention of their class on @date, and that no mark, unmark, hold or lock concerns:
-- what `plan` would mark (today, now; on another day, at its beginning). A row without a partition is a whole table: one
-- without partitions or a schedule, which somebody labelled as a table, that no tag, consumer or other table needs.
-- It says again what policies/gdpr.yml says, and so does checks/ad_hoc_without_label.sql: edit the three together.
WITH classed AS (
  SELECT *,
    CASE
      WHEN array_contains(labels, 'LegalHold.is_true') THEN 'legal hold'
      WHEN array_contains(labels, 'TableContent.user_data') THEN 'user data'
      WHEN array_contains(labels, 'TableContent.machine_data') THEN 'machine data'
      WHEN array_contains(labels, 'TableContent.static_data') THEN 'static data'
      ELSE 'none'
    END AS class,
    CASE
      WHEN array_contains(labels, 'LegalHold.is_true') THEN 'LegalHold.is_true'
      WHEN array_contains(labels, 'TableContent.user_data') THEN 'TableContent.user_data'
      ELSE 'TableContent.machine_data'
    END AS label
  FROM tables
),
kept AS (
  SELECT *,
    CASE class
      WHEN 'legal hold' THEN '7y'
      WHEN 'user data' THEN '90d'
      WHEN 'machine data' THEN '7d'
      WHEN 'none' THEN '360d'
    END AS keep
  FROM classed
  WHERE class <> 'static data'
),
due AS (
  SELECT p.table_id, p.partition, p._date, p.first_day, p.last_day, k.class, k.keep, p.rows, p.bytes
  FROM partitions p
  JOIN kept k ON k.table_id = p.table_id
  WHERE size(k.blocked) = 0
    AND coalesce(lower(k.floors['gc.enabled']), 'true') <> 'false'
    AND CASE
      WHEN p.partition IS NOT NULL THEN
        add_interval(if(k.class = 'user data', p.first_day, p.last_day), k.keep) < @date
        AND as_interval(k.keep) > duration_of_time_grain(k.classifiers)
        AND coalesce(lower(k.floors['delta.appendOnly']), 'false') <> 'true'
      ELSE
        k.class <> 'none' AND k.schedule IS NULL AND NOT coalesce(k.partitioned, TRUE)
        AND array_contains(k.own_labels, k.label)
        AND add_interval(to_date(p.landed_at), k.keep) + (p.landed_at - date_trunc('DAY', p.landed_at))
          < instant_of(@date)
        AND NOT exists(map_keys(k.floors), key -> startswith(key, 'consumer:'))
    END
),
needed AS (
  SELECT table_id FROM branches WHERE kind = 'tag'
  UNION
  SELECT table_id FROM transactions WHERE staged
  UNION
  SELECT a.table_id FROM files a JOIN files b ON a.path = b.path AND a.table_id <> b.table_id
),
pinned AS (
  SELECT table_id, object_id
  FROM unmarks
  WHERE coalesce(until > instant_of(@date), TRUE)
)
SELECT d.*
FROM due d
LEFT ANTI JOIN marks m
  ON m.table_id = d.table_id
  AND m.target = if(d.partition IS NULL, 'tables', 'partitions')
  AND m.object_id = coalesce(d.partition, d.table_id)
LEFT ANTI JOIN pinned u
  ON u.table_id = d.table_id AND u.object_id = coalesce(d.partition, u.object_id)
LEFT ANTI JOIN holds h
  ON h.table_id = d.table_id
  AND (d.partition IS NULL OR (
    coalesce(h.partition_from <= d.last_day, TRUE) AND coalesce(d.first_day <= h.partition_to, TRUE)
  ))
LEFT ANTI JOIN needed n
  ON n.table_id = d.table_id AND d.partition IS NULL
ORDER BY d.table_id, d._date, d.partition
