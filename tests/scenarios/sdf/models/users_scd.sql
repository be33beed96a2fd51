MERGE INTO lake.app.users_current AS t
USING (SELECT uid, email, full_name, left_at FROM lake.stg.users) AS s
ON t.uid = s.uid
WHEN MATCHED AND s.left_at IS NOT NULL THEN UPDATE SET t.email = NULL, t.left_at = s.left_at
WHEN MATCHED THEN UPDATE SET t.email = s.email, t.full_name = s.full_name
WHEN NOT MATCHED THEN INSERT (uid, email, full_name, left_at) VALUES (s.uid, s.email, s.full_name, s.left_at)
