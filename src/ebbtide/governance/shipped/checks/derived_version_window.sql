-- severity: warn
-- do: shorten `versions: {older_than: …}` of its policy, then `ebbtide plan --select TABLE`
-- Old versions of derived tables without PII can be made again: they need no more than 30 days.
SELECT t.table_id, r.policy, round(r.window_hours / 24, 2) AS window_days
FROM tables t
LEFT JOIN retention r
  ON r.table_id = t.table_id AND r.target = 'versions'
WHERE NOT t.is_pii
  AND NOT t.is_root
  AND NOT array_contains(t.labels, 'TableContent.static_data')
  AND coalesce(r.window_hours > 30 * 24, TRUE)
ORDER BY t.table_id
