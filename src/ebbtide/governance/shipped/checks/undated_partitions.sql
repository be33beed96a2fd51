-- do: name the column that dates them under `partition_date:` in tables/*.yml, then `ebbtide scan`; or drop them
-- A partition without a date is never due, so a table whose retention goes by partitions may have none.
SELECT p.table_id, p.partition, r.policy, t.date_column, t.date_doubt
FROM partitions p
JOIN tables t ON t.table_id = p.table_id
JOIN retention r
  ON r.table_id = p.table_id AND r.target = 'partitions'
WHERE p.first_day IS NULL AND p.partition IS NOT NULL
ORDER BY p.table_id, p.partition
