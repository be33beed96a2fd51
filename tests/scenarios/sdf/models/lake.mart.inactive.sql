SELECT uid FROM lake.app.users_current
EXCEPT
SELECT uid FROM lake.app.l7_active_users
