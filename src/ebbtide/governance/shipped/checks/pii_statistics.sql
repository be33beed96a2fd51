-- Statistics of a PII column hold its values in the clear, and outlive the rows.
WITH placed AS (
  SELECT *,
    count_if(type NOT LIKE 'struct%') OVER (PARTITION BY table_id ORDER BY position) AS leaf
  FROM columns
),
pii AS (
  SELECT c.table_id, c.column_id, c.leaf, t.format, t.properties AS p
  FROM placed c
  JOIN tables t ON t.table_id = c.table_id
  WHERE exists(c.labels, label -> label LIKE 'PII.%')
),
modes AS (
  SELECT *,
    CASE format
      WHEN 'iceberg' THEN
        coalesce(p[concat('write.metadata.metrics.column.', column_id)], p['write.metadata.metrics.default'], 'truncate(16)')
      WHEN 'paimon' THEN
        coalesce(p[concat('fields.', column_id, '.stats-mode')], p['metadata.stats-mode'], 'truncate(16)')
      WHEN 'delta' THEN
        CASE
          WHEN p['delta.dataSkippingStatsColumns'] IS NOT NULL THEN
            if(array_contains(split(p['delta.dataSkippingStatsColumns'], ' *, *'), column_id), 'full', 'none')
          WHEN coalesce(CAST(p['delta.dataSkippingNumIndexedCols'] AS INT), 32) = -1 THEN 'full'
          ELSE if(leaf <= coalesce(CAST(p['delta.dataSkippingNumIndexedCols'] AS INT), 32), 'full', 'none')
        END
      WHEN 'hudi' THEN
        if(p['hoodie.table.metadata.partitions'] NOT LIKE '%column_stats%', 'none', 'full')
      ELSE 'full'
    END AS statistics
  FROM pii
)
SELECT table_id, column_id, format, statistics
FROM modes
WHERE lower(statistics) NOT IN ('none', 'counts')
ORDER BY table_id, column_id
