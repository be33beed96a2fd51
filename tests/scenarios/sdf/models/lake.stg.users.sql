CREATE OR REPLACE VIEW lake.stg.users AS
SELECT
  uid,
  lower(trim(email)) AS email,
  phone,
  full_name,
  country_code,
  CAST(signup_at AS DATE) AS signup_date,
  left_at
FROM lake.raw.users
WHERE uid IS NOT NULL
