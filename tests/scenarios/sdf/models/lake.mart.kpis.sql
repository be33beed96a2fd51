SELECT 'paid' AS kpi, sum(total) AS value FROM lake.app.payment_totals
UNION ALL
SELECT 'users', count(*) FROM lake.app.users_current
UNION ALL
SELECT 'refunded', sum(refunded) FROM lake.app.refund_rate
