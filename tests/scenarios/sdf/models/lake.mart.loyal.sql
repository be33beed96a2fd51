SELECT uid FROM lake.app.l7_active_users
INTERSECT
SELECT uid FROM lake.app.payment_totals
