SELECT c.name AS country, c.region, count(*) AS users
FROM lake.stg.users AS u
JOIN lake.raw.country_codes AS c ON c.code = u.country_code
GROUP BY c.name, c.region
