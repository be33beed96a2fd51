-- do: `ebbtide labels TABLE`; leave one of the two in tables/*.yml, or in the table's properties
-- A table may have one label of its own per classifier.
WITH own AS (
  SELECT table_id, explode(own_labels) AS label
  FROM tables
)
SELECT table_id, split_part(label, '.', 1) AS classifier, sort_array(collect_set(label)) AS labels
FROM own
GROUP BY ALL
HAVING count(DISTINCT label) > 1
ORDER BY table_id, classifier
