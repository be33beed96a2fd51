SELECT uid, datediff(left_at, signup_date) AS days, CASE WHEN country_code IN ('DE', 'AT') THEN 'DACH' ELSE 'other' END AS area
FROM lake.stg.users
WHERE left_at IS NOT NULL
