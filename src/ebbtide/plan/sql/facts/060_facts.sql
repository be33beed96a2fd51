-- Everything that the objects of a dataset ask of it. `blocks` are reasons why nothing of it may go.
-- That only Hudi's own cleaner removes from a Hudi table is no doubt: that is the way that removals go there, and no file
-- below its base path is ever an orphan (formats.md).
CREATE TEMP TABLE facts AS
WITH lost AS (
    SELECT did, list('unknown:the head of ' || name || ' was not read') AS reasons
    FROM refs WHERE position IS NULL GROUP BY did
)
SELECT d.* EXCLUDE (floors, scan_error, unknown, locked_by),
       joined(list_concat(
           list_transform(texts(d.locked_by), lambda other: 'locked:' || other),
           list_transform(texts(d.unknown), lambda reason: 'unknown:' || reason),
           only_if(d.scan_error IS NOT NULL, ['unknown:' || d.scan_error]),
           texts(lost.reasons))) AS blocks,
       coalesce(held.holds, []) AS holds,
       joined(list_transform(coalesce(held.holds, []), lambda h: h.text)) AS any_holds,
       joined(list_transform(list_filter(coalesce(held.holds, []), lambda h: h.first IS NULL AND h.last IS NULL),
                             lambda h: h.text)) AS whole_holds,
       coalesce(f.counts, []) AS floor_counts, coalesce(f.times, []) AS floor_times,
       coalesce(f.consumers, []) AS floor_consumers, coalesce(f.named, []) AS floor_named,
       texts(f.gc) AS floor_gc, texts(f.append) AS floor_append
FROM datasets d LEFT JOIN lost USING (did) LEFT JOIN held USING (table_id) LEFT JOIN format_floors f USING (did);
