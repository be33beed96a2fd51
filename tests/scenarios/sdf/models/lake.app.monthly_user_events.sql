SELECT uid, event, count(*) AS n, @date AS _date
FROM lake.raw.daily_user_events
WHERE _date BETWEEN @date AND add_months(@date, 1)
GROUP BY uid, event
