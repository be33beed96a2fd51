-- do: `ebbtide report promises`; shorten the term that `breaks` names in policies/*.yml, then `ebbtide check promises`
-- Every promise must be proved for every table that it selects; `breaks` names the term that does not let it.
SELECT promise, table_id, gone_within, bound_days, breaks, terms
FROM promises
WHERE breaks IS NOT NULL
ORDER BY promise, table_id
