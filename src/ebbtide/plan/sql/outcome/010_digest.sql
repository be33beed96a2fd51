-- The digest's lines: canonical JSON of an object, sorted keys, no spaces, absent keys left out (`plan.plan`).
CREATE TEMP TABLE digests AS
WITH lines AS (
    SELECT dataset, decision, concat(
        '{"because":', to_json(because), ',"branches":', to_json(branches),
        ',"bytes":' || bytes, ',"cutoff":' || to_json(cutoff), ',"dataset":', to_json(dataset),
        ',"decision":"', decision, '","drops_from":', to_json(drops_from),
        ',"files":{"count":', files.count, ',"digest":"', files.digest, '"}', ',"fingerprint":' || to_json(fingerprint),
        ',"kept_by":{' || array_to_string(list_transform(kept_by, lambda k: to_json(k.name) || ':' || k.bytes), ',') || '}',
        ',"leaves":{' || array_to_string(list_transform(leaves, lambda v:
            to_json(v.branch) || ':{"bytes":' || v.bytes || coalesce(',"rows":' || v.rows, '') || '}'), ',') || '}',
        ',"object":', to_json(object), ',"policy":' || to_json(policy), ',"protected_by":', to_json(protected_by),
        ',"rows":' || rows, ',"target":"', target, '","waits_for":', to_json(waits_for), '}') AS line
    FROM planned
), hashed AS MATERIALIZED (
    SELECT dataset, decision, sha256(line) AS hash FROM lines
)
SELECT dataset, sha256(array_to_string(list_sort(list(hash)), chr(10))) AS digest,
       count(*) FILTER (decision = 'mark') AS mark, count(*) FILTER (decision = 'keep') AS keep,
       count(*) FILTER (decision = 'held') AS held, count(*) FILTER (decision = 'unmarked') AS unmarked,
       count(*) FILTER (decision = 'marked') AS marked, count(*) FILTER (decision = 'wait') AS wait,
       count(*) FILTER (decision = 'sweep') AS sweep
FROM hashed GROUP BY dataset;
