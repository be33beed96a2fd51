-- The candidates that no dataset of any format references, by loosely equal paths. What a format keeps for a while after
-- its removal is referenced until that time, by the store's clock. A store that has no times gives the first moment
-- there is: nothing says how old such a file is (hazard 22).
CREATE TEMP TABLE orphans AS
SELECT table_id, folder, path, bytes,
       CASE WHEN modified_at >= TIMESTAMPTZ '1971-01-01 00:00:00+00' THEN modified_at END AS modified_at
FROM candidates c
WHERE NOT EXISTS (SELECT 1 FROM referenced r WHERE loosely(r.path) = loosely(c.path));
