-- What the proof of a promise needs to know of a table (spec §3, "Promises"): who owns what on main, the longest span of
-- its partitions, what of its data has no date, and what keeps its data without a bound in time.
CREATE TEMP TABLE promise_facts AS
WITH promised AS (
    SELECT table_id, list(number ORDER BY number) AS promised FROM selected_promises GROUP BY table_id
), spans AS (
    SELECT did, max(last_day - first_day) AS span, count(*) FILTER (first_day IS NULL) AS undated FROM covered GROUP BY did
), plain AS (
    SELECT table_id, count(*) AS files FROM in_files WHERE role = 'data' AND live AND partition IS NULL GROUP BY table_id
), named AS (
    SELECT did, list(name ORDER BY name) AS names FROM refs GROUP BY did
)
SELECT d.table_id, t.labels, coalesce(p.promised, []) AS promised, d.floor_numbers, d.blocks, d.floor_gc, d.floor_append,
       texts(t.capabilities) AS capabilities, d.any_holds AS held, texts(n.names) AS refs, s.span, s.undated, plain.files AS plain_files,
       list_filter(d.for_partitions, lambda n: NOT list_contains(r.refused, n))[1] AS partitions,
       list_filter(d.for_rows, lambda n: NOT list_contains(r.refused, n))[1] AS rows,
       list_filter(d.for_versions, lambda n: NOT list_contains(r.refused, n))[1] AS versions,
       list_filter(d.for_orphans, lambda n: NOT list_contains(r.refused, n))[1] AS orphans,
       longest_days(d.time_grain) AS grain, is_trailing(d.time_grain, d.schedule, d.covers) AS trailing,
       list_transform(list_filter(d.floor_counts, lambda rule: coalesce(rule.count > 1, true)), lambda rule: rule.text)
           AS counts,
       list_transform(d.floor_times, lambda rule: {'text': rule.text, 'micros': rule.micros}) AS floor_times,
       list_transform(d.floor_consumers, lambda rule: rule.text)
           || list_transform(d.floor_named, lambda rule: rule.text) AS consumers
FROM facts d JOIN in_tables t USING (table_id) CROSS JOIN refused_on_main r
LEFT JOIN promised p USING (table_id) LEFT JOIN spans s USING (did) LEFT JOIN plain USING (table_id)
LEFT JOIN named n USING (did)
WHERE NOT d.former;
