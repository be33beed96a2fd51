-- do: correct `schedule:` or `partition_date:` in tables/*.yml, then `ebbtide scan`; or drop the partition
-- A partition's date must fit the table's schedule. Days and weeks count from the earliest date. Months and years begin
-- on the 1st; where the date is the last day covered, it is the same day of each, or the last where a month is shorter.
WITH dated AS (
  SELECT p.table_id, p.partition, p._date, t.schedule,
    CAST(regexp_extract(t.schedule, '[0-9]+', 0) AS INT) AS every,
    right(t.schedule, 1) AS unit,
    coalesce(t.covers, if(as_interval(t.time_grain) > as_interval(t.schedule), 'trailing', 'leading')) AS covers,
    min(p._date) OVER (PARTITION BY p.table_id) AS earliest,
    max(day(p._date)) OVER (PARTITION BY p.table_id) AS ends_on
  FROM partitions p
  JOIN tables t ON t.table_id = p.table_id
  WHERE p._date IS NOT NULL
),
placed AS (
  SELECT *,
    if(covers = 'trailing', least(ends_on, day(last_day(_date))), 1) AS wanted_day,
    if(covers = 'trailing', month(earliest), 1) AS wanted_month
  FROM dated
)
SELECT table_id, partition, _date, schedule
FROM placed
WHERE CASE unit
    WHEN 'd' THEN datediff(_date, earliest) % every <> 0
    WHEN 'w' THEN datediff(_date, earliest) % (7 * every) <> 0
    WHEN 'm' THEN day(_date) <> wanted_day
      OR ((year(_date) - year(earliest)) * 12 + month(_date) - month(earliest)) % every <> 0
    WHEN 'y' THEN month(_date) <> wanted_month OR day(_date) <> wanted_day OR (year(_date) - year(earliest)) % every <> 0
  END
ORDER BY table_id, _date
