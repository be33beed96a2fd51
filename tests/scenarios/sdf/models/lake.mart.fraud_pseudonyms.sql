SELECT md5(cast(uid AS string)) AS pseudonym, mask(ip) AS ip FROM lake.mart.fraud_candidates
