-- do: `ebbtide explain --select TABLE`; give the policy a longer `older_than`, or the table a shorter grain
-- A policy keeps the partitions of a table whose time grain is not shorter than its retention.
SELECT t.table_id, t.time_grain, r.policy, r.older_than
FROM tables t
JOIN retention r
  ON r.table_id = t.table_id AND r.target = 'partitions'
WHERE as_interval(t.time_grain) >= r.older_than_days
ORDER BY t.table_id
