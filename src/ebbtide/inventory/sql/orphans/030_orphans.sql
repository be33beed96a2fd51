-- The candidates that no dataset of any format references. A path counts as referenced also when it only differs in
-- percent-encoding, however often it was encoded (hazard 5): that keeps more, never less. What a format keeps for a while
-- after its removal is referenced until that time, by the store's clock. A store that has no times gives the first moment
-- there is: nothing says how old such a file is (hazard 22).
CREATE TEMP MACRO loosely(path) AS regexp_replace(path, '(?:%(?:25)*[0-9A-Fa-f]{2}|[^A-Za-z0-9/._-])+', '?', 'g');

CREATE TEMP TABLE orphans AS
SELECT table_id, folder, path, bytes,
       CASE WHEN modified_at >= TIMESTAMPTZ '1971-01-01 00:00:00+00' THEN modified_at END AS modified_at
FROM candidates c
WHERE NOT EXISTS (SELECT 1 FROM referenced r WHERE loosely(r.path) = loosely(c.path));

-- Folders that look like tables and that no catalog lists.
CREATE TEMP TABLE unregistered AS
SELECT location, count(*) AS files, sum(bytes)::BIGINT AS bytes, max(modified_at) AS newest,
       max(path) FILTER (regexp_matches(path, '(?s)^(.*)/metadata/[^/]*\.metadata\.json(?:\.gz)?$')) AS metadata
FROM owned WHERE kind = 'unregistered' GROUP BY location;
