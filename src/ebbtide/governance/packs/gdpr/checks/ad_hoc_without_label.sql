-- Ad hoc tables (no schedule, no partitions) that are past the retention of their class on @date, and that nobody labelled
-- as a table: no policy drops them. Label the table, give it a schedule, or drop it.
WITH classed AS (
  SELECT t.table_id, p.landed_at,
    CASE
      WHEN array_contains(t.labels, 'TableContent.user_data') THEN 'user data'
      WHEN array_contains(t.labels, 'TableContent.machine_data') THEN 'machine data'
      ELSE 'none'
    END AS class
  FROM tables t
  JOIN partitions p ON p.table_id = t.table_id AND p.partition IS NULL
  WHERE t.schedule IS NULL
    AND NOT exists(t.own_labels, label -> startswith(label, 'TableContent.') OR label = 'LegalHold.is_true')
    AND NOT array_contains(t.labels, 'TableContent.static_data')
),
kept AS (
  SELECT *, CASE class WHEN 'user data' THEN '90d' WHEN 'machine data' THEN '7d' ELSE '360d' END AS keep
  FROM classed
)
SELECT table_id, class, keep, landed_at
FROM kept
WHERE add_interval(to_date(landed_at), keep) + (landed_at - date_trunc('DAY', landed_at)) < instant_of(@date)
ORDER BY table_id
