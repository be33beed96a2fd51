-- Files that nothing references, one object a folder (spec §2). A mark covers exactly the files that it named: it freezes
-- the newest modification time among them. Ages are measured by the store's clock at the time of the listing. What any
-- dataset references, or its format still keeps (Delta's tombstones), was left out before: that takes the whole lake
-- (`plan.parts`).
CREATE TEMP TABLE orphan_files AS
SELECT d.did, o.folder AS object_id, o.path, o.bytes, epoch_us(o.modified_at) AS instant, d.for_orphans[1] AS owner,
       p.o_text, p.o_allowed, m.mark,
       coalesce(CASE WHEN m.mark.cutoff IS NOT NULL THEN epoch_us(o.modified_at) <= m.mark.cutoff::BIGINT
                     ELSE epoch_us(o.modified_at) < p.o_allowed END, false) AS old
FROM in_orphans o JOIN datasets d USING (table_id) JOIN policies p ON p.number = d.for_orphans[1]
LEFT JOIN marks m ON m.did = d.did AND m.object_id = o.folder AND m.target = 'orphans';

CREATE TEMP TABLE orphan_objects AS
WITH folders AS (
    SELECT did, object_id, any_value(owner) AS owner, any_value(o_text) AS o_text, any_value(o_allowed) AS allowed,
           any_value(mark) AS mark, count(*) FILTER (old) AS files, max(instant) FILTER (old) AS newest,
           coalesce(string_agg(concat_ws('|', path, bytes, instant), chr(10) ORDER BY concat_ws('|', path, bytes, instant))
                    FILTER (old), '') AS seen
    FROM orphan_files GROUP BY did, object_id
), aged AS (
    SELECT o.* EXCLUDE (did), d.*, p.name AS owner_name, pins.pin, now_us, sha256(o.seen) AS fingerprint,
           coalesce(o.mark.cutoff, o.newest::VARCHAR) AS cutoff,
           coalesce(o.files > 0 AND o.newest < o.allowed, false) AS due,
           joined(list_concat(d.blocks, list_transform(m.errors, lambda error: 'unknown:' || error))) AS doubts,
           joined(list_concat(
               list_transform(list_filter(d.statutes, lambda s: NOT is_older(o.newest, s.months, s.micros, now_us)),
                              lambda s: s.text), d.floor_gc)) AS kept
    FROM folders o JOIN facts d USING (did) JOIN policies p ON p.number = o.owner CROSS JOIN moment m
    LEFT JOIN pins ON pins.did = o.did AND pins.object_id = o.object_id
), told AS (
    SELECT *, CASE WHEN due
                   THEN said('unreferenced', files || ' files that nothing references, older than ' || o_text)
                   ELSE said('young', 'no file is older than ' || o_text) END AS age FROM aged
), judged AS (
    SELECT *, back_of(mark, owner_name, kept, fingerprint, due, age) AS back FROM told
), decided AS (
    SELECT *, decision_of(any_holds, pin, back, doubts, mark, kept, due, now_us) AS decision FROM judged
)
SELECT did, object_id, owner, fingerprint, cutoff, decision,
       because_of(decision, any_holds, pin, back, due, age) AS because,
       waits_of(decision, mark, doubts, now_us) AS waits_for, joined(list_concat(kept, doubts, any_holds)) AS protected_by
FROM decided;
