INSERT OVERWRITE lake.app.l7_active_users
WITH today AS (
  SELECT uid FROM lake.app.daily_active_users WHERE _date = @date
), before AS (
  SELECT uid, last_seen FROM lake.app.l7_active_users WHERE _date = date_sub(@date, 1)
)
SELECT
  coalesce(t.uid, b.uid) AS uid,
  CASE WHEN t.uid IS NOT NULL THEN @date ELSE b.last_seen END AS last_seen,
  @date AS _date
FROM today AS t
FULL OUTER JOIN before AS b ON t.uid = b.uid
WHERE t.uid IS NOT NULL OR b.last_seen > date_sub(@date, 7)
