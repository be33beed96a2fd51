-- Rows: one object a dataset and owning policy; its cutoff is frozen by the mark (spec §2).
CREATE TEMP TABLE row_objects AS
WITH owned AS (
    SELECT d.*, list_filter(d.for_rows, lambda n: NOT list_contains(r.refused, n))[1] AS owner
    FROM facts d CROSS JOIN refused_on_main r WHERE NOT d.former
), bound AS (
    SELECT o.*, p.name AS object_id, p.name AS owner_name, p.r_column, p.r_where, p.r_text, p.r_first_day,
           lower(c.type) AS type, m.mark, pins.pin, now_us,
           coalesce(m.mark.cutoff, CASE WHEN lower(c.type) = 'date' THEN p.r_day
                                        WHEN starts_with(lower(c.type), 'timestamp') THEN p.r_instant END) AS cutoff,
           -- The policy as it was marked; the rows themselves change every day.
           sha256(concat_ws('|', p.name, coalesce(p.r_where, concat_ws(':', p.r_column, p.r_text)))) AS fingerprint
    FROM owned o JOIN policies p ON p.number = o.owner CROSS JOIN moment
    LEFT JOIN in_columns c ON c.table_id = o.table_id AND c.column_id = p.r_column
    LEFT JOIN marks m ON m.did = o.did AND m.object_id = p.name AND m.target = 'rows'
    LEFT JOIN pins ON pins.did = o.did AND pins.object_id = p.name
), told AS (
    SELECT *, r_where IS NOT NULL OR cutoff IS NOT NULL AS due,
           coalesce(CASE
               WHEN mark.acted_us IS NOT NULL THEN said('deleted', 'deleted from the head, versions before it remain')
               WHEN r_where IS NOT NULL THEN said('predicate', 'rows where ' || r_where)
               WHEN type IS NULL THEN said('no_column', 'the table has no column ' || r_column)
               WHEN cutoff IS NULL THEN said('no_time', r_column || ' is ' || type || ', neither a date nor a timestamp')
               ELSE said('old', 'rows with ' || r_column || ' before ' || cutoff || ', older than ' || r_text)
           END, said('no_policy', 'no policy')) AS age,
           -- What goes by predicate has no age; else all that the owner takes must be older than a floor, too.
           joined(list_concat(
               list_transform(list_filter(statutes, lambda s: NOT coalesce(r_first_day <= s.first_day, false)),
                              lambda s: s.text),
               floor_gc, only_if(mark.acted_us IS NULL, floor_append))) AS kept
    FROM bound
), judged AS (
    SELECT *, back_of(mark, owner_name, kept, fingerprint, due, age) AS back FROM told
), decided AS (
    SELECT *, decision_of(any_holds, pin, back, blocks, mark, kept, due, now_us) AS decision FROM judged
)
SELECT did, object_id, owner, fingerprint, cutoff, decision,
       because_of(decision, any_holds, pin, back, due, age) AS because,
       waits_of(decision, mark, blocks, now_us) AS waits_for, joined(list_concat(kept, blocks, any_holds)) AS protected_by
FROM decided;

-- What deleted rows wait for: versions that do not go now and are from before the delete, or of a branch that left main
-- before it, whatever was written there since. Where nobody knows when a branch left main, it may have been before.
CREATE TEMP TABLE row_waits AS
WITH acted AS (
    SELECT did, object_id, mark.acted_us AS acted FROM marks
    WHERE target = 'rows' AND mark.acted_us IS NOT NULL AND did IS NOT NULL
), forks AS (
    SELECT did, branch, max(instant) AS instant
    FROM (SELECT did, unnest(branches) AS branch, instant FROM tx
          WHERE list_contains(branches, 'main') AND did IN (SELECT did FROM acted))
    WHERE branch <> 'main' GROUP BY did, branch
), of_datasets AS (
    SELECT did, map_from_entries(list({'key': branch, 'value': instant})) AS forks FROM forks GROUP BY did
), there AS (
    SELECT tx.did, tx.tid, a.object_id, coalesce((t.t_ready AND t.expires) OR t.v_ready, false) AS going,
           t.owner_v IS NOT NULL AS owned,
           tx.instant < a.acted OR (NOT list_contains(tx.branches, 'main') AND len(list_filter(
               tx.branches, lambda b: coalesce(o.forks[b] >= a.acted, false))) = 0) AS before
    FROM tx JOIN acted a USING (did) LEFT JOIN of_datasets o USING (did)
    LEFT JOIN timeline t ON t.did = tx.did AND t.tid = tx.tid
    WHERE NOT tx.expired
)
SELECT did, 'rows' AS target, object_id,
       joined(list(CASE WHEN owned THEN 'version:' || tid ELSE versions_target() END)) AS waits
FROM there WHERE before AND NOT going GROUP BY did, object_id;
