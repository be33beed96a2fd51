-- do: set `versions: {older_than: 7d}` and a short `grace` in its policy, then `ebbtide plan --select TABLE`
-- Old versions of a table with PII must be gone after 7 to 30 days: older_than + grace + tick.
SELECT t.table_id, r.policy, round(r.window_hours / 24, 2) AS window_days
FROM tables t
LEFT JOIN retention r
  ON r.table_id = t.table_id AND r.target = 'versions'
WHERE t.is_pii
  AND coalesce(r.window_hours NOT BETWEEN 7 * 24 AND 30 * 24, TRUE)
ORDER BY t.table_id
