INSERT INTO lake.mart.fraud_candidates (uid, reason)
SELECT uid, concat('card ', right(card_token, 4)) FROM lake.raw.payments WHERE status = 'chargeback'
