-- do: `ebbtide contract repair TABLE`, where tables/*.yml has it; or turn the column's statistics off and rewrite it
-- Statistics of a PII column hold its values in the clear, and outlive the rows.
SELECT s.table_id, s.column_id, t.format, s.statistics
FROM readable_statistics s
JOIN tables t ON t.table_id = s.table_id
ORDER BY s.table_id, s.column_id
