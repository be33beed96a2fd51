CREATE OR REPLACE VIEW lake.stg.payments (payment_id, uid, amount_eur, status, _date) AS
SELECT p.payment_id, p.uid, p.amount * coalesce(f.rate, 1), p.status, p._date
FROM lake.raw.payments AS p
LEFT JOIN lake.raw.fx_rates AS f ON f.currency = p.currency AND f._date = p._date
