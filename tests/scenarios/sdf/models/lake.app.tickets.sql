SELECT t.ticket_id, t.uid, t.address, length(t.body) AS body_length
FROM lake.raw.support_tickets t
ANTI JOIN lake.raw.users u ON u.uid = t.uid AND u.left_at IS NOT NULL
