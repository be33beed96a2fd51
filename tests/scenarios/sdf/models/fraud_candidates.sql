INSERT INTO lake.mart.fraud_candidates (uid, ip, reason)
SELECT e.uid, e.ip, 'shared ip'
FROM lake.stg.events e
WHERE e.ip IN (SELECT ip FROM lake.stg.events GROUP BY ip HAVING count(DISTINCT uid) > 20)
