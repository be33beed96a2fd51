SELECT ticket_id, address.city AS city, address.zip AS zip
FROM lake.raw.support_tickets
