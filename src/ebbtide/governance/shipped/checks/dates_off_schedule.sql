-- A partition's date must fit the table's schedule: months begin on the 1st, years on 1 January, days and weeks count
-- from the earliest date.
WITH dated AS (
  SELECT p.table_id, p.partition, p._date, t.schedule,
    CAST(regexp_extract(t.schedule, '[0-9]+', 0) AS INT) AS every,
    right(t.schedule, 1) AS unit,
    min(p._date) OVER (PARTITION BY p.table_id) AS earliest
  FROM partitions p
  JOIN tables t ON t.table_id = p.table_id
  WHERE p._date IS NOT NULL
)
SELECT table_id, partition, _date, schedule
FROM dated
WHERE CASE unit
    WHEN 'd' THEN datediff(_date, earliest) % every <> 0
    WHEN 'w' THEN datediff(_date, earliest) % (7 * every) <> 0
    WHEN 'm' THEN day(_date) <> 1
      OR ((year(_date) - year(earliest)) * 12 + month(_date) - month(earliest)) % every <> 0
    WHEN 'y' THEN month(_date) <> 1 OR day(_date) <> 1 OR (year(_date) - year(earliest)) % every <> 0
  END
ORDER BY table_id, _date
