-- Of files that were named with their dataset (`asked`), those that must stay, and who needs them (invariant 1). A file may
-- go when no other dataset references it, and its own dataset only through versions that are going: the formats that keep
-- no version by itself still list those. Expired versions need nothing, and a dataset that is dropped as a whole needs none
-- of its own files.
CREATE TEMP TABLE needed AS
WITH found AS (
    SELECT f.table_id, f.path, f.versions, a.owner FROM referenced f JOIN asked a USING (path)
), own AS (
    SELECT table_id, path, versions FROM found
    WHERE table_id = owner AND table_id NOT IN (SELECT table_id FROM dropped)
), runs AS (
    SELECT table_id, path, unnest(versions) AS run FROM own
), staying AS (
    SELECT t.table_id, t.transaction_id, t.position FROM in_transactions t
    WHERE NOT coalesce(t.expired, false)
      AND NOT EXISTS (SELECT 1 FROM going g WHERE g.table_id = t.table_id AND g.transaction_id = t.transaction_id)
), needing AS (
    SELECT path, table_id AS who FROM found WHERE table_id <> owner
    UNION ALL
    -- A file without runs (a log, a catalog's own file) belongs to the dataset as a whole.
    SELECT path, 'its dataset' FROM own WHERE coalesce(len(versions), 0) = 0
    UNION ALL
    SELECT r.path, b.name FROM runs r JOIN beside b ON r.run.first = b.position
    UNION ALL
    SELECT r.path, 'version:' || s.transaction_id FROM runs r JOIN staying s
        ON s.table_id = r.table_id AND s.position BETWEEN r.run.first AND r.run.last
)
SELECT path, min(who) AS who FROM needing GROUP BY path;
