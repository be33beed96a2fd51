SELECT uid, sum(amount_eur) AS total, max(_date) AS last_payment
FROM lake.stg.payments
WHERE status = 'settled'
GROUP BY uid
HAVING sum(amount_eur) > 0
