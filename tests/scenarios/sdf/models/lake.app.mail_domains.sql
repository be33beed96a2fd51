SELECT substring_index(email, '@', -1) AS domain, approx_count_distinct(uid) AS users
FROM lake.app.users_current
GROUP BY 1
