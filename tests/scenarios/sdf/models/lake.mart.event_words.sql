SELECT word, count(*) AS n
FROM lake.stg.events
LATERAL VIEW explode(split(event, '_')) w AS word
GROUP BY word
