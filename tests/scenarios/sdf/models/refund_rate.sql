CREATE TABLE lake.app.refund_rate USING iceberg AS
WITH refunded AS (
  SELECT payment_id, sum(amount) AS refunded FROM lake.raw.refunds GROUP BY payment_id
)
SELECT p._date, count(r.payment_id) / count(*) AS share, sum(r.refunded) AS refunded
FROM lake.stg.payments p
LEFT JOIN refunded r ON r.payment_id = p.payment_id
GROUP BY p._date
