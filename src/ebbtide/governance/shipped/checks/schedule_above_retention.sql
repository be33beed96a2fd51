-- do: correct `schedule:` in tables/*.yml, then `ebbtide check schedule_above_retention`; or give it a longer retention
-- User data must be written again before it goes: its schedule may not be longer than its retention.
SELECT t.table_id, t.schedule, r.policy, r.older_than
FROM tables t
JOIN retention r
  ON r.table_id = t.table_id AND r.target = 'partitions'
WHERE array_contains(t.labels, 'TableContent.user_data')
  AND as_interval(t.schedule) > r.older_than_days
ORDER BY t.table_id
