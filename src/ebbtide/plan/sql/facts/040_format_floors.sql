-- Settings of the formats that no cleanup goes below (spec §2), parsed into rules. A setting that cannot be read keeps
-- everything: unknown means no.
CREATE TEMP TABLE floor_settings AS
SELECT did, setting.key AS key, setting.value AS value,
       regexp_extract(setting.key, '(?s)^ref\.(.*)\.min-snapshots-to-keep$', 1)
       || regexp_extract(setting.key, '(?s)^branch:(.*)\.snapshot\.(?:num-retained\.min|time-retained)$', 1) AS branch,
       lower(trim(setting.value)) AS length
FROM (SELECT did, unnest(map_entries(floors)) AS setting FROM datasets);

-- The length of `7 d`, `1h` or `INTERVAL 1 week 2 days` in microseconds; NULL where any part is not understood, or it is
-- for ever.
CREATE TEMP TABLE floor_lengths AS
WITH parts AS (
    SELECT DISTINCT length, list_transform(
        list_zip(regexp_extract_all(length, '([0-9]+) *([a-z]+)', 1), regexp_extract_all(length, '([0-9]+) *([a-z]+)', 2)),
        lambda part: part[1]::DOUBLE * CASE
            WHEN part[2] IN ('w', 'week', 'weeks') THEN 604800000000
            WHEN part[2] IN ('d', 'day', 'days') THEN 86400000000
            WHEN part[2] IN ('h', 'hour', 'hours') THEN 3600000000
            WHEN part[2] IN ('min', 'm', 'minute', 'minutes') THEN 60000000
            WHEN part[2] IN ('s', 'sec', 'secs', 'second', 'seconds') THEN 1000000
            WHEN part[2] IN ('ms', 'milli', 'millis', 'millisecond', 'milliseconds') THEN 1000
        END) AS amounts
    FROM floor_settings
    WHERE regexp_full_match(length, '(?:interval +)?(?:([0-9]+) *([a-z]+) *)+')
)
SELECT length, list_sum(amounts)::BIGINT AS micros FROM parts
WHERE len(list_filter(amounts, lambda amount: amount IS NULL)) = 0 AND list_sum(amounts) < 1e17;

CREATE TEMP TABLE format_floors AS
SELECT s.did,
       coalesce(list({'text': 'floor:' || key || '=' || value, 'branch': branch, 'count': whole(value)} ORDER BY key)
           FILTER (key IN ('history.expire.min-snapshots-to-keep', 'snapshot.num-retained.min')
                   OR regexp_matches(key, '(?s)^ref\..*\.min-snapshots-to-keep$')
                   OR regexp_matches(key, '(?s)^branch:.*\.snapshot\.num-retained\.min$')), []) AS counts,
       coalesce(list({'text': 'floor:' || key || '=' || value, 'branch': branch, 'micros': micros,
                      'since_superseded': key = 'delta.deletedFileRetentionDuration',
                      'of_changelogs': key = 'changelog.time-retained'} ORDER BY key)
           FILTER (key IN ('snapshot.time-retained', 'changelog.time-retained', 'delta.deletedFileRetentionDuration')
                   OR regexp_matches(key, '(?s)^branch:.*\.snapshot\.time-retained$')), []) AS times,
       coalesce(list({'text': 'floor:' || key, 'line': regexp_extract(value, '(?s)^(.*)/([0-9]+)$', 1),
                      'number': whole(regexp_extract(value, '(?s)^(.*)/([0-9]+)$', 2))} ORDER BY key)
           FILTER (starts_with(key, 'consumer:') OR starts_with(key, 'changelog:')), []) AS consumers,
       -- Versions by their ids (`versions:` and what needs them).
       coalesce(list({'text': 'floor:' || key, 'ids': string_split(value, ',')} ORDER BY key)
           FILTER (starts_with(key, 'versions:')), []) AS named,
       only_if(coalesce(bool_or(key = 'gc.enabled' AND lower(value) = 'false'), false),
               ['floor:gc.enabled=false']) AS gc,
       -- Delta refuses every commit that takes rows out of the head of such a table; older versions may go.
       only_if(coalesce(bool_or(key = 'delta.appendOnly' AND lower(value) = 'true'), false),
               ['floor:delta.appendOnly=true']) AS append
FROM floor_settings s LEFT JOIN floor_lengths USING (length) GROUP BY s.did;
