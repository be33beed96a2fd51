WITH items AS (
  SELECT i.merchant_id, i.price, p._date
  FROM lake.raw.payment_items i
  JOIN lake.stg.payments p ON p.payment_id = i.payment_id
), ranked AS (
  SELECT merchant_id, sum(price) AS revenue, rank() OVER (ORDER BY sum(price) DESC) AS place
  FROM items
  GROUP BY merchant_id
)
SELECT m.name, m.category, r.revenue, r.place
FROM ranked r
JOIN lake.raw.merchants m ON m.merchant_id = r.merchant_id
