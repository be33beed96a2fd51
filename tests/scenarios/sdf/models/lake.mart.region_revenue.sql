SELECT r.region, sum(p.amount_eur) AS revenue
FROM lake.stg.payments p
JOIN lake.stg.users u ON u.uid = p.uid
JOIN lake.app.countries c ON c.code = u.country_code
JOIN lake.app.regions r ON r.region = c.region
GROUP BY ROLLUP (r.region)
