-- Branches that nobody wrote to for `unused_for`, counted from the head's commit. Never main. What would go with the
-- branch keeps it: a tag that lies in it and a consumer that reads it (Paimon), and a version that a person unmarked and
-- main does not reach (spec §1).
CREATE TEMP TABLE branch_objects AS
WITH pinned AS (
    SELECT did, object_id, max(pin) AS pin FROM (
        SELECT did, object_id, pin FROM pins
        UNION ALL
        SELECT p.did, a.branch, a.tid || ' was ' || p.pin
        FROM pins p JOIN (SELECT did, tid, unnest(branches) AS branch FROM tx WHERE NOT list_contains(branches, 'main')) a
            ON a.did = p.did AND a.tid = p.object_id
    ) GROUP BY did, object_id
), owned AS (
    SELECT d.*, b.name AS object_id, b.head, coalesce(b.main, true) AS main, tx.instant,
           list_filter(d.for_branches, lambda n: NOT list_contains(s.refused, n))[1] AS owner
    FROM in_branches b JOIN facts d USING (table_id) JOIN branch_sets s ON s.branches = [b.name]
    LEFT JOIN tx ON tx.did = d.did AND tx.tid = b.head
    WHERE b.kind = 'branch' AND NOT d.former AND len(d.for_branches) > 0
), inside AS (
    -- Paimon keeps a branch's own tags in its folder and calls them `branch/tag`; elsewhere tags outlive branches.
    SELECT o.did, o.object_id, list(r.name) AS tags
    FROM owned o JOIN refs r ON r.did = o.did AND starts_with(r.name, 'tag:' || o.object_id || '/')
    WHERE o.format = 'paimon' GROUP BY o.did, o.object_id
), aged AS (
    SELECT o.*, p.name AS owner_name, p.b_text, m.mark, pinned.pin, now_us,
           is_older(o.instant, p.b_months, p.b_micros, now_us) AS due,
           sha256(concat_ws('|', o.object_id, coalesce(o.head, ''))) AS fingerprint,
           joined(list_concat(
               only_if(o.main, [main_branch()]), texts(i.tags),
               list_transform(list_filter(o.floor_consumers, lambda rule: rule.line = o.object_id),
                              lambda rule: rule.text),
               list_transform(list_filter(o.statutes, lambda s: NOT is_older(o.instant, s.months, s.micros, now_us)),
                              lambda s: s.text),
               o.floor_gc)) AS kept
    FROM owned o JOIN policies p ON p.number = o.owner CROSS JOIN moment
    LEFT JOIN inside i ON i.did = o.did AND i.object_id = o.object_id
    LEFT JOIN marks m ON m.did = o.did AND m.object_id = o.object_id AND m.target = 'branches'
    LEFT JOIN pinned ON pinned.did = o.did AND pinned.object_id = o.object_id
), told AS (
    SELECT *, coalesce(CASE WHEN due THEN said('old', 'last written more than ' || b_text || ' ago')
                            WHEN instant IS NULL THEN said('no_commit', 'no commit: never due')
                            ELSE said('young', 'written in the last ' || b_text) END, said('no_policy', 'no policy')) AS age
    FROM aged
), judged AS (
    SELECT *, back_of(mark, owner_name, kept, fingerprint, due, age) AS back FROM told
), decided AS (
    SELECT *, decision_of(any_holds, pin, back, blocks, mark, kept, due, now_us) AS decision FROM judged
)
SELECT did, object_id, owner, fingerprint, decision,
       because_of(decision, any_holds, pin, back, due, age) AS because,
       waits_of(decision, mark, blocks, now_us) AS waits_for, joined(list_concat(kept, blocks, any_holds)) AS protected_by
FROM decided;
