-- What is an orphan if nothing references it (formats.md, "Never an orphan"; hazards 7, 9). A file is a candidate only
-- where its owner's format writes such files, and does not keep it by name: whatever else lies there was put there by
-- someone else, and stays. Hudi's are its own. A folder that a person condemned goes whole, but for what nobody may touch.
-- What protects is matched with any blanks at the end of a name, what condemns is not.
CREATE TEMP TABLE candidates AS
WITH named AS (
    SELECT *,
           -- A segment that begins with `_` or `.`, unless it is a partition (`_day=1`) or Delta's change data.
           regexp_matches(replace('/' || inside, '/_change_data/', '/'), '(?s)/[_.][^=/]*(?:/|$)') AS hidden,
           regexp_matches(inside, '(?i)\.(?:db|sqlite3?|duckdb|mv\.db)(?:-wal|-shm|-journal)?\s*$')
           OR regexp_matches(inside, '(?:^|/)(?:metastore_db/|derby\.log\s*$)')
           OR regexp_matches(path, '(?:^|/)\.ebbtide/') AS untouchable,
           try_cast(nullif(regexp_extract(inside, '^metadata/v(\d+)(?:\.gz)?\.metadata\.json(?:\.gz)?$', 1)
               || regexp_extract(inside, '^metadata/(\d+)-[^/]*?(?:\.gz)?\.metadata\.json(?:\.gz)?$', 1), '')
               AS BIGINT) AS number
    FROM owned WHERE exact AND table_id IS NOT NULL
), judged AS (
    SELECT *, CASE format
        -- Metadata files from before the current one; where that is not known, none is.
        WHEN 'iceberg' THEN (regexp_matches(inside, '(?s)^data/.*\.(?:parquet|orc|avro|puffin)$')
                             OR regexp_matches(inside, '(?s)^metadata/[^/]*\.(?:avro|stats|puffin|parquet)$')
                             OR coalesce(number < metadata, false))
                            AND NOT regexp_matches(inside, '(?:^|/)version-hint\.text\s*$')
        WHEN 'delta' THEN regexp_matches(inside, '(?s)\.(?:parquet|bin)$')
        WHEN 'paimon' THEN (regexp_matches(inside, '(?s)^(?:manifest|index|statistics)/[^/]+$')
                            OR regexp_matches(inside, '(?s)(?:^|/)bucket-[^/]+/(?:data|changelog)-[^/]+$'))
                           AND NOT regexp_matches(inside, '^(?:schema|tag|branch|snapshot|changelog|consumer)/')
                           AND NOT regexp_matches(inside, '(?:^|/)(?:EARLIEST|LATEST)\s*$')
        ELSE false END AS written
    FROM named
)
SELECT * FROM judged
WHERE NOT untouchable AND ((kind IN ('live', 'former') AND written AND NOT hidden)
                           OR (kind = 'condemned' AND modified_at < before));
