-- do: `ebbtide labels TABLE`; label it in tables/*.yml, give it a `schedule:` there, or drop it
-- Ad hoc tables (no schedule, no partitions) that are past the retention of their class on @date, and that no policy drops:
-- nobody gave the table itself the label of its class (it has it from its columns or inputs, or has none), or it was
-- partitioned once. Label the table, give it a schedule, or drop it.
-- Classes and terms are those of policies/gdpr.yml and of reports/partitions_to_delete.sql: edit the three together.
WITH classed AS (
  SELECT t.table_id, p.landed_at, t.own_labels, t.partitioned,
    CASE
      WHEN array_contains(t.labels, 'LegalHold.is_true') THEN 'legal hold'
      WHEN array_contains(t.labels, 'TableContent.user_data') THEN 'user data'
      WHEN array_contains(t.labels, 'TableContent.machine_data') THEN 'machine data'
      WHEN array_contains(t.labels, 'TableContent.static_data') THEN 'static data'
      ELSE 'none'
    END AS class
  FROM tables t
  JOIN partitions p ON p.table_id = t.table_id AND p.partition IS NULL
  WHERE t.schedule IS NULL AND (NOT t.partitioned OR p.files > 0)
),
kept AS (
  SELECT *,
    CASE class
      WHEN 'legal hold' THEN '7y'
      WHEN 'user data' THEN '90d'
      WHEN 'machine data' THEN '7d'
      WHEN 'none' THEN '360d'
    END AS keep,
    CASE class
      WHEN 'legal hold' THEN 'LegalHold.is_true'
      WHEN 'user data' THEN 'TableContent.user_data'
      WHEN 'machine data' THEN 'TableContent.machine_data'
    END AS label
  FROM classed
  WHERE class <> 'static data'
)
SELECT table_id, class, keep, landed_at
FROM kept
WHERE add_interval(to_date(landed_at), keep) + (landed_at - date_trunc('DAY', landed_at)) < instant_of(@date)
  AND (label IS NULL OR partitioned OR NOT array_contains(own_labels, label))
ORDER BY table_id
