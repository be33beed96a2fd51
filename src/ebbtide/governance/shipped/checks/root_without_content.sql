-- do: `ebbtide labels TABLE`; put a label of TableContent on it in tables/*.yml
-- A root table must say whether it holds user, machine or static data.
SELECT t.table_id, t.classifiers
FROM tables t
WHERE t.is_root
  AND NOT exists(t.labels, label -> label LIKE 'TableContent.%')
  AND EXISTS (SELECT 1 FROM classifiers c WHERE c.name = 'TableContent')
ORDER BY t.table_id
