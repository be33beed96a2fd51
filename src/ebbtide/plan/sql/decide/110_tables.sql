-- Ad hoc tables (without a schedule) whose last write on any branch is past retention. Tags and consumers keep it, and so
-- does whatever of it a person unmarked (spec §1).
CREATE TEMP TABLE table_objects AS
WITH pinned AS (
    SELECT p.did, max(CASE WHEN p.object_id = d.table_id THEN p.pin ELSE p.object_id || ' was ' || p.pin END) AS pin
    FROM pins p JOIN datasets d USING (did) GROUP BY p.did
), others AS (
    SELECT did, list_distinct(flatten(list(s.others))) AS others FROM sharing s JOIN f USING (fid) GROUP BY did
), named AS (
    SELECT did, list(name) FILTER (NOT starts_with(name, 'branch:')) AS tags,
           list_sort(list(substr(name, 8)) FILTER (starts_with(name, 'branch:'))) AS branches,
           sha256(string_agg(concat_ws('|', name, tid), chr(10) ORDER BY name, tid, position)) AS fingerprint
    FROM refs GROUP BY did
), owned AS (
    SELECT d.*, w.instant, d.for_tables[1] AS owner, m.mark, pinned.pin, now_us, p.name AS owner_name, p.tb_text,
           texts(n.branches) AS branches, of_this_table(coalesce(n.fingerprint, sha256('')), d.identity, m.mark) AS fingerprint,
           is_older(w.instant, p.tb_months, p.tb_micros, now_us) AS past,
           coalesce(p.tb_unpartitioned AND coalesce(d.partitioned, true), false) AS apart,
           coalesce(p.tb_own_label AND NOT list_has_any(d.own_labels, p.tb_labels), false) AS nameless,
           joined(list_concat(
               texts(n.tags), texts(o.others), list_transform(d.floor_consumers, lambda rule: rule.text),
               list_transform(d.floor_named, lambda rule: rule.text),
               list_transform(list_filter(d.statutes, lambda s: NOT is_older(w.instant, s.months, s.micros, now_us)),
                              lambda s: s.text),
               d.floor_gc)) AS kept
    FROM facts d JOIN policies p ON p.number = d.for_tables[1] CROSS JOIN moment
    LEFT JOIN last_writes w USING (did) LEFT JOIN pinned USING (did) LEFT JOIN others o USING (did)
    LEFT JOIN named n USING (did)
    LEFT JOIN marks m ON m.did = d.did AND m.object_id = d.table_id AND m.target = 'tables'
    WHERE NOT d.former
), told AS (
    SELECT *, past AND schedule IS NULL AND NOT apart AND NOT nameless AS due,
           coalesce(CASE
               WHEN schedule IS NOT NULL THEN said('scheduled', 'not ad hoc: its schedule is ' || schedule)
               WHEN apart THEN said('partitioned', 'it is partitioned: its partitions go by their dates')
               WHEN nameless THEN said('no_label', 'nobody gave the table itself such a label')
               WHEN instant IS NULL THEN said('no_commit', 'never written to: never due')
               WHEN past THEN said('old', 'last written more than ' || tb_text || ' ago')
               ELSE said('young', 'written in the last ' || tb_text)
           END, said('no_policy', 'no policy')) AS age
    FROM owned
), judged AS (
    SELECT *, back_of(mark, owner_name, kept, fingerprint, due, age) AS back FROM told
), decided AS (
    SELECT *, decision_of(any_holds, pin, back, blocks, mark, kept, due, now_us) AS decision FROM judged
)
SELECT did, table_id AS object_id, owner, branches, fingerprint, decision,
       because_of(decision, any_holds, pin, back, due, age) AS because,
       waits_of(decision, mark, blocks, now_us) AS waits_for, joined(list_concat(kept, blocks, any_holds)) AS protected_by
FROM decided;
