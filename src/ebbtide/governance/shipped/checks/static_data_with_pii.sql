-- do: `ebbtide labels TABLE`; take TableContent.static_data off it, or reclassify the column in tables/*.yml
-- A table that says of itself that it holds static data must not have a PII column.
SELECT t.table_id, c.column_id, c.classifiers
FROM tables t
JOIN columns c
  ON c.table_id = t.table_id AND exists(c.labels, label -> label LIKE 'PII.%')
WHERE array_contains(t.own_labels, 'TableContent.static_data')
ORDER BY t.table_id, c.column_id
