-- Partitions: their age and the verdict (spec §3). Those of the inventory are those of the main branch's head. A marked
-- one that is no longer there was deleted by the sweep's own commit, where an act was begun on it; where none was,
-- somebody else removed it, and it is sent back.
CREATE TEMP TABLE partition_objects AS
WITH there AS (
    SELECT coalesce(c.did, m.did) AS did, coalesce(c.partition, m.object_id) AS object_id, c.did IS NOT NULL AS in_head,
           c.first_day, c.last_day, c.files, c.bytes, c.rows, c.last_transaction, m.mark
    FROM covered c
    FULL JOIN (SELECT * FROM marks WHERE target = 'partitions' AND did IS NOT NULL) m
        ON m.did = c.did AND m.object_id = c.partition
), owned AS (
    SELECT t.* EXCLUDE (first_day, last_day), d.*, pins.pin,
           list_filter(d.for_partitions, lambda n: NOT list_contains(r.refused, n))[1] AS owner,
           CASE WHEN t.in_head THEN t.first_day ELSE s.first_day END AS first_day,
           CASE WHEN t.in_head THEN t.last_day ELSE s.last_day END AS last_day
    FROM there t JOIN facts d USING (did) CROSS JOIN refused_on_main r
    LEFT JOIN in_marked_days s ON s.table_id = d.table_id AND s.partition = t.object_id
    LEFT JOIN pins ON pins.did = t.did AND pins.object_id = t.object_id
    WHERE NOT d.former
), aged AS (
    SELECT o.*, p.name AS owner_name, p.p_text, p.p_oldest, now_us,
           coalesce(p.has_versions, false) AS then_versions,
           CASE WHEN p.p_oldest THEN o.first_day ELSE o.last_day END AS day,
           coalesce(longest_days(o.time_grain) >= p.p_longest, false) AS short,
           day_is_older(CASE WHEN p.p_oldest THEN o.first_day ELSE o.last_day END, p.p_months, p.p_days, today) AS past,
           NOT o.in_head AND o.mark.act IS NOT NULL AS deleted,
           CASE WHEN o.in_head
                THEN sha256(concat_ws('|', o.object_id, coalesce(o.files::VARCHAR, '?'), coalesce(o.bytes::VARCHAR, '?'),
                                      coalesce(o.rows::VARCHAR, '?'), coalesce(o.last_transaction, '?')))
                ELSE o.mark.fingerprint END AS fingerprint,
           joined(list_concat(
               list_transform(list_filter(o.statutes, lambda s: NOT day_is_older(o.last_day, s.months, s.days, today)),
                              lambda s: s.text),
               o.floor_gc, only_if(o.in_head, o.floor_append))) AS kept,
           joined(list_transform(
               list_filter(o.holds, lambda h: coalesce(h.first <= o.last_day, true)
                                              AND coalesce(o.first_day <= h.last, true)), lambda h: h.text)) AS held
    FROM owned o LEFT JOIN policies p ON p.number = o.owner CROSS JOIN moment
    WHERE o.owner IS NOT NULL OR o.mark IS NOT NULL
), told AS (
    SELECT *, CASE WHEN in_head THEN past AND NOT short ELSE deleted END AS due,
           coalesce(CASE
               WHEN deleted THEN said('deleted', 'deleted from the head, its files remain')
               WHEN NOT in_head THEN said('removed_elsewhere', 'it is gone: someone else removed it')
               WHEN short THEN said('grain', 'grain: ' || p_text || ' is not longer than the table''s ' || time_grain)
               WHEN day IS NULL THEN said('no_date', 'no date' || coalesce(': ' || date_doubt
                   || CASE WHEN date_by IS NULL THEN '; declare partition_date in tables/*.yml' ELSE '' END,
                   ': never due'))
               WHEN past THEN said('old', CASE WHEN p_oldest THEN 'its first day ' ELSE 'its last day ' END || day::VARCHAR
                   || CASE WHEN coalesce(date_by = 'text', false)
                           THEN coalesce(', read from the text of ' || date_column || ',', '') ELSE '' END
                   || ' is more than ' || p_text || ' ago')
               ELSE said('young', 'not older than ' || p_text)
           END, said('no_policy', 'no policy')) AS age
    FROM aged
), judged AS (
    SELECT *, back_of(mark, owner_name, kept, fingerprint, due, age) AS back FROM told
), decided AS (
    SELECT *, decision_of(held, pin, back, blocks, mark, kept, due, now_us) AS decision FROM judged
)
SELECT did, object_id, in_head, owner, then_versions, fingerprint, decision,
       because_of(decision, held, pin, back, due, age) AS because,
       waits_of(decision, mark, blocks, now_us) AS waits_for,
       joined(list_concat(kept, blocks, held)) AS protected_by
FROM decided;

-- The files with each partition's rows: those that main's head has, and after the commit all that remain. What another
-- branch, a tag, a staged snapshot or another dataset references stays, and `stay` says whose it is.
CREATE TEMP TABLE partition_files AS
SELECT f.fid, f.did, p.object_id, f.bytes, f.role, p.in_head, p.decision,
       joined(list_concat(list_filter(texts(n.names), lambda name: name <> 'branch:main'), texts(s.others))) AS stay
FROM f JOIN partition_objects p ON p.did = f.did AND p.object_id = f.partition
LEFT JOIN file_names n USING (fid) LEFT JOIN sharing s USING (fid)
WHERE is_going(p.decision) AND is_of_partition(f.role)
  AND (NOT p.in_head OR list_contains(texts(n.names), 'branch:main'));
