-- severity: off
-- do: correct `schedule:` in tables/*.yml, then `ebbtide check schedule_above_45d`; or write the table more often
-- The stricter rule: no table with user data has a schedule above 45 days.
SELECT table_id, schedule
FROM tables
WHERE array_contains(labels, 'TableContent.user_data')
  AND as_interval(schedule) > 45
ORDER BY table_id
