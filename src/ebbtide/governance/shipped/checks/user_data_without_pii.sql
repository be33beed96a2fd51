-- do: `ebbtide classify --suggest TABLE`; label its columns, or take TableContent.user_data off it
-- A table that says of itself that it holds user data must have a PII column.
SELECT t.table_id, t.classifiers
FROM tables t
LEFT ANTI JOIN columns c
  ON c.table_id = t.table_id AND exists(c.labels, label -> label LIKE 'PII.%')
WHERE array_contains(t.own_labels, 'TableContent.user_data')
ORDER BY t.table_id
