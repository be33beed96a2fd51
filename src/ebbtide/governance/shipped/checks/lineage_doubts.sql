-- severity: warn
-- do: `ebbtide lineage --table TABLE`; name the columns in the model, or correct its inputs
-- Columns that could not be told apart, so that every input column was taken, and tables that feed each other.
SELECT kind, place, subject, message, hint
FROM problems
WHERE kind IN ('fallback', 'cycle')
ORDER BY place, subject, message
