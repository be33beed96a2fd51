SELECT event, lead(event) OVER (PARTITION BY session_id ORDER BY _date) AS following
FROM lake.stg.events
