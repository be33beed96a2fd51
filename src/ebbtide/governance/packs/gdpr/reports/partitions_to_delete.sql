-- The partitions that are past the retention of their class on @date, and that no mark, unmark, hold or lock concerns:
-- what `plan` would mark (today, now; on another day, at its beginning). It says again what policies/gdpr.yml says, so edit the two together.
WITH classed AS (
  SELECT *,
    CASE
      WHEN array_contains(labels, 'LegalHold.is_true') THEN 'legal hold'
      WHEN array_contains(labels, 'TableContent.user_data') THEN 'user data'
      WHEN array_contains(labels, 'TableContent.machine_data') THEN 'machine data'
      WHEN array_contains(labels, 'TableContent.static_data') THEN 'static data'
      ELSE 'none'
    END AS class
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
  WHERE add_interval(if(k.class = 'user data', p.first_day, p.last_day), k.keep) < @date
    AND as_interval(k.keep) > duration_of_time_grain(k.classifiers)
    AND size(k.blocked) = 0
    AND coalesce(lower(k.floors['gc.enabled']), 'true') <> 'false'
    AND coalesce(lower(k.floors['delta.appendOnly']), 'false') <> 'true'
),
pinned AS (
  SELECT table_id, object_id
  FROM unmarks
  WHERE coalesce(until > instant_of(@date), TRUE)
)
SELECT d.*
FROM due d
LEFT ANTI JOIN marks m
  ON m.table_id = d.table_id AND m.target = 'partitions' AND m.object_id = d.partition
LEFT ANTI JOIN pinned u
  ON u.table_id = d.table_id AND u.object_id = d.partition
LEFT ANTI JOIN holds h
  ON h.table_id = d.table_id
  AND coalesce(h.partition_from <= d.last_day, TRUE)
  AND coalesce(d.first_day <= h.partition_to, TRUE)
ORDER BY d.table_id, d._date, d.partition
