SELECT u.uid, x.n AS exposures
FROM lake.app.users_current u
CROSS JOIN LATERAL (SELECT count(e.event) AS n FROM lake.stg.events e WHERE e.uid = u.uid) x
