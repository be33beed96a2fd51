SELECT
  session_id,
  first_value(uid) OVER w AS uid,
  row_number() OVER w AS n,
  _date
FROM lake.stg.events
WINDOW w AS (PARTITION BY session_id ORDER BY _date)
