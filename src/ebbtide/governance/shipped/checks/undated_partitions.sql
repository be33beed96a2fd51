-- A partition without a date is never due, so a table whose retention goes by partitions may have none.
SELECT p.table_id, p.partition, r.policy
FROM partitions p
JOIN retention r
  ON r.table_id = p.table_id AND r.target = 'partitions'
WHERE p.first_day IS NULL
ORDER BY p.table_id, p.partition
