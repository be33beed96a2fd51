-- Transactions and versions: one row each, with both verdicts (spec §1 "Protection", §2 `versions`). A transaction is
-- protected by views and by whoever references a file that it added; a version by heads, tags, staging, `keep_min` and
-- floors. Both share the native id, so what pins one pins the other.
CREATE TEMP TABLE owned_history AS
WITH owned AS (
    SELECT h.*, s.instant AS superseded, pl.places, r.names AS referenced_by, n.names AS named, pins.pin,
           coalesce(n.pinned, false) AS pinned, a.tid IS NOT NULL AS along,
           mt.mark AS mark_t, mv.mark AS mark_v, d.* EXCLUDE (did),
           joined(list_concat(d.whole_holds, texts(hv.texts_))) AS held,
           CASE WHEN len(h.branches) = 0 THEN d.for_transactions[1]
                ELSE list_filter(d.for_transactions, lambda n: NOT list_contains(b.refused, n))[1] END AS owner_t,
           CASE WHEN len(h.branches) = 0 THEN d.for_versions[1]
                ELSE list_filter(d.for_versions, lambda n: NOT list_contains(b.refused, n))[1] END AS owner_v
    FROM history h JOIN facts d USING (did) JOIN branch_sets b USING (branches)
    LEFT JOIN superseded s ON s.did = h.did AND s.tid = h.tid
    LEFT JOIN places pl ON pl.did = h.did AND pl.tid = h.tid
    LEFT JOIN referenced r ON r.did = h.did AND r.tid = h.tid
    LEFT JOIN named_versions n ON n.did = h.did AND n.tid = h.tid
    LEFT JOIN pins_of_history pins ON pins.did = h.did AND pins.object_id = h.tid
    LEFT JOIN taken_along a ON a.did = h.did AND a.tid = h.tid
    LEFT JOIN held_versions hv ON hv.did = h.did AND hv.tid = h.tid
    LEFT JOIN marks mt ON mt.did = h.did AND mt.object_id = h.tid AND mt.target = 'transactions'
    LEFT JOIN marks mv ON mv.did = h.did AND mv.object_id = h.tid AND mv.target = 'versions'
)
SELECT o.did, o.table_id, o.format, o.any_order, o.tid, o.position, o.branches, o.kind, o.instant, o.superseded, o.expired,
       o.staged, o.in_views_of, o.pinned, o.along, o.mark_t, o.mark_v, o.pin, o.held, o.blocks, o.owner_t, o.owner_v,
       o.can_drop, o.floor_append, texts(o.named) AS named, texts(o.referenced_by) AS referenced_by,
       coalesce(o.places, []) AS places, sha256(concat_ws('|', o.tid, o.instant::VARCHAR)) AS fingerprint, m.now_us,
       joined(list_concat(
           list_transform(list_filter(o.floor_counts, lambda rule: rule.count IS NULL OR len(list_filter(
               coalesce(o.places, []), lambda place: (rule.branch = '' OR rule.branch = place.branch)
                                                     AND place.rank <= rule.count)) > 0), lambda rule: rule.text),
           list_transform(list_filter(o.floor_times, lambda rule:
               (rule.branch = '' OR list_contains(o.branches, rule.branch))
               AND rule.of_changelogs = regexp_matches(o.tid, '/changelog/[0-9]+$')
               AND coalesce(CASE WHEN rule.since_superseded THEN o.superseded ELSE o.instant END + rule.micros >= m.now_us,
                            true)), lambda rule: rule.text),
           list_transform(list_filter(o.floor_consumers, lambda rule:
               rule.line = regexp_extract(o.tid, '(?s)^(.*)/([0-9]+)$', 1)
               AND coalesce(rule.number <= whole(regexp_extract(o.tid, '(?s)^(.*)/([0-9]+)$', 2)), true)),
               lambda rule: rule.text),
           list_transform(list_filter(o.floor_named, lambda rule: list_contains(rule.ids, o.tid)), lambda rule: rule.text),
           o.floor_gc)) AS kept_by_format,
       list_transform(list_filter(o.statutes, lambda s: NOT is_older(o.instant, s.months, s.micros, m.now_us)),
                      lambda s: s.text) AS statutes_t,
       list_transform(list_filter(o.statutes, lambda s: NOT is_older(o.superseded, s.months, s.micros, m.now_us)),
                      lambda s: s.text) AS statutes_v
FROM owned o CROSS JOIN moment m;

-- The branches whose view and head no longer protect the transaction, because its policy says so (spec §1).
CREATE TEMP TABLE lifted AS
SELECT h.did, h.tid, list_transform(
           CASE WHEN p.looks_at_branches
                THEN list_filter(h.branches, lambda b: list_contains(texts(k.taken), b)) ELSE h.branches END,
           lambda b: 'branch:' || b) AS names
FROM owned_history h JOIN policies p ON p.number = h.owner_t LEFT JOIN taken_branches k USING (number)
WHERE p.t_latest AND h.kind = 'APPEND' AND h.can_drop AND len(h.floor_append) = 0;

CREATE TEMP TABLE transaction_verdicts AS
WITH aged AS (
    SELECT h.*, p.name AS owner_name, p.t_text, texts(l.names) AS lifted,
           is_older(h.instant, p.t_months, p.t_micros, h.now_us) AS due,
           coalesce(p.t_staged, false) AS may_stage, p.t_keep_views,
           coalesce(p.t_latest, false) AND len(h.in_views_of) > 0 AS latest, p.t_latest
    FROM owned_history h LEFT JOIN policies p ON p.number = h.owner_t
    LEFT JOIN lifted l ON l.did = h.did AND l.tid = h.tid
), told AS (
    SELECT *,
           joined(list_concat(
               list_filter(list_concat(in_views_of, referenced_by), lambda name:
                   NOT list_contains(lifted, name) AND NOT (may_stage AND name = 'staged:' || tid)),
               only_if(latest, floor_append),
               list_transform(list_filter(places, lambda place: place.views_after < t_keep_views AND place.views_after > 0),
                              lambda place: 'views:' || place.branch),
               only_if(staged AND NOT may_stage, [staged()]),
               kept_by_format, statutes_t)) AS kept,
           CASE WHEN due THEN 'committed more than ' || t_text || ' ago' ELSE 'not older than ' || t_text END AS since
    FROM aged
), aged_so AS (
    SELECT *, coalesce(CASE
               WHEN latest AND len(lifted) = 0 AND kind <> 'APPEND'
                   THEN said('mixed_age', since || ': rows of mixed age, use partitions or rows')
               WHEN latest AND len(lifted) = 0 AND NOT can_drop
                   THEN said('cannot_drop', since || ': ' || format || ' cannot drop exactly its files from the head')
               ELSE said(CASE WHEN due THEN 'old' ELSE 'young' END, since) END, said('no_policy', 'no policy')) AS age
    FROM told
), judged AS (
    SELECT *, back_of(mark_t, owner_name, kept, fingerprint, due, age) AS back FROM aged_so
), decided AS (
    SELECT *, decision_of(held, pin, back, blocks, mark_t, kept, due, now_us) AS decision FROM judged
)
SELECT did, tid, decision, because_of(decision, held, pin, back, due, age) AS because,
       waits_of(decision, mark_t, blocks, now_us) AS waits_for, joined(list_concat(kept, blocks, held)) AS protected_by,
       (owner_t IS NOT NULL OR mark_t IS NOT NULL) AND NOT expired AS exists_, lifted,
       list_filter(lifted, lambda name: list_contains(referenced_by, name)) AS leaves
FROM decided;

CREATE TEMP TABLE version_verdicts AS
WITH aged AS (
    SELECT h.*, p.name AS owner_name, p.v_text, p.v_keep_max, p.v_limit,
           is_older(h.superseded, p.v_months, p.v_micros, h.now_us) AS old,
           coalesce(p.v_keep_min, least(CASE WHEN h.format = 'paimon' THEN 10 ELSE 1 END, p.v_keep_max)) AS least_,
           coalesce(h.superseded IS NOT NULL AND p.v_keep_max IS NOT NULL AND len(h.places) > 0
                    AND len(list_filter(h.places, lambda place: place.rank <= p.v_keep_max)) = 0, false) AS crowded
    FROM owned_history h LEFT JOIN policies p ON p.number = h.owner_v
), told AS (
    SELECT *, old OR crowded AS due,
           joined(list_concat(
               named,
               -- `keep_min` limits the versions target only, not what goes under a partition's mark.
               CASE WHEN along THEN []::VARCHAR[]
                    ELSE list_transform(list_filter(places, lambda place: place.rank <= least_),
                                        lambda place: 'keep_min:' || place.branch) END,
               kept_by_format, statutes_v)) AS kept,
           coalesce(CASE WHEN old THEN said('old', 'superseded more than ' || v_text || ' ago')
                         WHEN crowded THEN said('crowded', 'more than ' || v_keep_max || ' versions are kept')
                         WHEN superseded IS NULL THEN said('current', 'it is current')
                         ELSE coalesce(said('young', 'not superseded for ' || v_text),
                                       said('few', 'not more than keep_max')) END,
                    said('no_policy', 'no policy')) AS age
    FROM aged
), judged AS (
    SELECT *, back_of(mark_v, owner_name, kept, fingerprint, due, age) AS back FROM told
), decided AS (
    SELECT *, decision_of(held, pin, back, blocks, mark_v, kept, due, now_us) AS first_decision,
           (owner_v IS NOT NULL OR mark_v IS NOT NULL) AND NOT expired AS exists_ FROM judged
), said AS (
    SELECT *, along AND old AND first_decision IN ('mark', 'marked') AS goes_along,
           because_of(first_decision, held, pin, back, due, age) AS first_because FROM decided
), limited AS (
    -- At most so many of a dataset in one run, the oldest first; the rest is kept for a later one.
    SELECT *, CASE WHEN goes_along THEN 'ready' ELSE first_decision END AS decision,
           row_number() OVER (PARTITION BY did, owner_v, exists_ AND NOT goes_along AND first_decision = 'mark'
                              ORDER BY superseded NULLS FIRST, position) AS turn
    FROM said
), kept_back AS (
    SELECT *, exists_ AND decision = 'mark' AND coalesce(turn > v_limit, false) AS beyond FROM limited
)
SELECT did, tid, exists_, CASE WHEN beyond THEN 'keep' ELSE decision END AS decision,
       CASE WHEN beyond THEN said('limit_per_run', first_because.text || '; the limit of ' || v_limit || ' a run is reached')
            WHEN goes_along THEN said('along', first_because.text || ', under the mark of a deleted partition')
            ELSE first_because END AS because,
       CASE WHEN goes_along THEN []::VARCHAR[] ELSE waits_of(first_decision, mark_v, blocks, now_us) END AS waits_for,
       joined(list_concat(kept, blocks, held)) AS protected_by
FROM kept_back;

-- `expires` says whether the version goes with the transaction. What left the heads goes like any other; but a version
-- of the latest view, which people read until then, goes by the versions target where a policy has one.
CREATE TEMP TABLE timeline AS
SELECT h.did, h.tid, h.format, h.any_order, h.position, h.branches, h.instant, h.expired, h.pinned, h.fingerprint,
       h.owner_t, h.owner_v, t.leaves,
       len(t.leaves) = 0 AND NOT (list_has_any(t.lifted, h.in_views_of) AND h.owner_v IS NOT NULL) AS expires,
       t.exists_ AS t_exists, t.decision AS t_decision, t.because AS t_because, t.waits_for AS t_waits,
       t.protected_by AS t_protected,
       v.exists_ AS v_exists, v.decision AS v_decision, v.because AS v_because, v.waits_for AS v_waits,
       v.protected_by AS v_protected,
       t.exists_ AND t.decision = 'ready' AS t_ready, v.exists_ AND v.decision = 'ready' AS v_ready,
       CASE WHEN t.exists_ AND is_going(t.decision) THEN t.decision END AS t_going,
       CASE WHEN v.exists_ AND is_going(v.decision) THEN v.decision END AS v_going
FROM owned_history h JOIN transaction_verdicts t ON t.did = h.did AND t.tid = h.tid
JOIN version_verdicts v ON v.did = h.did AND v.tid = h.tid;
