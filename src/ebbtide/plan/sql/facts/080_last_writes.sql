-- When data was last written to a table at the latest; no row where nothing ever was. What changed no data is no write (a
-- sweep of versions leaves such commits behind: Delta's VACUUM), unless the commit before it is gone from the history:
-- that may have been one.
CREATE TEMP TABLE last_writes AS
SELECT did, max(instant) AS instant FROM tx
WHERE kind <> 'METADATA' OR (starts_view AND parent_id IS NOT NULL) GROUP BY did;
