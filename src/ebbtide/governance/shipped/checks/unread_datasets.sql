-- do: `ebbtide scan`; repair what it names, or name it under `ignore:` in ebbtide.yml
-- What could not be read is not known: the other checks saw what the scan before it saw.
SELECT catalog, table_id, error, hint
FROM scan_errors
ORDER BY catalog, table_id
