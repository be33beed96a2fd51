-- Old versions of a table with PII must be gone after 7 to 30 days: older_than + grace + tick.
SELECT t.table_id, r.policy, r.older_than_days + r.grace_days + r.tick_days AS window_days
FROM tables t
LEFT JOIN retention r
  ON r.table_id = t.table_id AND r.target = 'versions'
WHERE t.is_pii
  AND coalesce(r.older_than_days + r.grace_days + r.tick_days NOT BETWEEN 7 AND 30, TRUE)
ORDER BY t.table_id
