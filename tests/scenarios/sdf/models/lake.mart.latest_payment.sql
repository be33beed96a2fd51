SELECT payment_id, uid, amount_eur
FROM lake.stg.payments
QUALIFY row_number() OVER (PARTITION BY uid ORDER BY _date DESC) = 1
