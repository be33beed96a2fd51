SELECT
  u.uid,
  u.full_name,
  concat_ws(', ', u.email, s.phone) AS contacts,
  coalesce(p.total, 0) AS paid,
  (SELECT count(*) FROM lake.raw.support_tickets t WHERE t.uid = u.uid) AS tickets,
  a.last_seen
FROM lake.app.users_current u
LEFT JOIN lake.stg.users s ON s.uid = u.uid
LEFT JOIN lake.app.payment_totals p ON p.uid = u.uid
LEFT JOIN lake.app.l7_active_users a ON a.uid = u.uid
