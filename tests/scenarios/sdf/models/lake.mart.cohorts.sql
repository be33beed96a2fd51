WITH RECURSIVE months (first_day, n) AS (
  SELECT min(signup_date), 0 FROM lake.stg.users
  UNION ALL
  SELECT add_months(first_day, 1), n + 1 FROM months WHERE n < 24
)
SELECT m.first_day, count(u.uid) AS users
FROM months m
LEFT JOIN lake.stg.users u ON u.signup_date >= m.first_day
GROUP BY m.first_day
