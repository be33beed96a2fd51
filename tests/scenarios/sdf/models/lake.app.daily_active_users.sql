-- One row per user and day. Bare SELECT: it defines the table of the file's name.
SELECT uid, count(*) AS events, min(session_id) AS first_session, @date AS _date
FROM lake.stg.events
WHERE _date = @date
GROUP BY uid
