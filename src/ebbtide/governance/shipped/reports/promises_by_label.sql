-- Every promise and every label of the tables that it selects: the longest time any of them can take.
WITH labelled AS (
  SELECT promise, gone_within, bound_days, breaks, explode(labels) AS label
  FROM promises
)
SELECT promise, label, gone_within, count(*) AS tables,
  if(bool_or(bound_days IS NULL), NULL, max(bound_days)) AS bound_days,
  bool_and(breaks IS NULL) AS proved,
  sort_array(collect_set(breaks)) AS breaks
FROM labelled
GROUP BY ALL
ORDER BY promise, label
