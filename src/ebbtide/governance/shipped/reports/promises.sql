-- Every promise and every table that it selects, with each term of the proof.
SELECT promise, table_id, gone_within, bound_days, breaks IS NULL AS proved, breaks, terms
FROM promises
ORDER BY promise, table_id
