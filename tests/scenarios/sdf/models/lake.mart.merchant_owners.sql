SELECT m.merchant_id, u.full_name AS owner, u.email AS owner_email
FROM lake.raw.merchants m, lake.app.users_current u
WHERE u.uid = m.owner_uid
