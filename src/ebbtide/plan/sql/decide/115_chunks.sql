-- Chunks of hot tables, by what the registry knows of them (spec §6). No mark and no grace: past `drop_after` the gate
-- decides, and `tier run` drops, behind a fence and after a proof of its own. A hold on the hot table or on its cold one
-- keeps both. What was dropped is in the lake only, and no object any more.
CREATE TEMP TABLE chunk_objects AS
WITH each_hold AS (
    SELECT table_id, unnest(holds) AS hold FROM held
), standing AS (
    SELECT c.table_id, c.object_id, list(h.hold.text) AS holds
    FROM in_chunks c JOIN each_hold h ON h.table_id = c.table_id OR h.table_id = c.cold
    WHERE coalesce(h.hold.first <= c.last_day, true) AND coalesce(h.hold.last >= c.first_day, true)
    GROUP BY ALL
), aged AS (
    SELECT c.* EXCLUDE (people), joined(list_concat(texts(s.holds), texts(c.people))) AS holds,
           rule IS NOT NULL AND drop_text IS NOT NULL AND is_older(last_us, drop_months, drop_micros, now_us) AS past,
           is_older(last_us, tier_months, tier_micros, now_us) AS to_prove
    FROM in_chunks c LEFT JOIN standing s USING (table_id, object_id) CROSS JOIN moment
), told AS (
    SELECT *, past AND state IN ('active', 'tiered') AS due,
           CASE
               WHEN state = 'missing' THEN said('missing', 'it is missing: another tool dropped it')
               WHEN rule IS NULL THEN said('no_policy', 'no file of hottier/ names its table any more')
               WHEN last_us IS NULL THEN said('no_date', 'its range has no end: never due')
               WHEN drop_text IS NULL THEN said('no_policy', 'its table has no drop_after')
               WHEN past THEN said('old', 'its range ended more than ' || drop_text || ' ago')
               WHEN state = 'tiered' THEN said('tiered', 'it is in the lake, and its range ended in the last ' || drop_text)
               WHEN to_prove THEN said('young', 'its range ended in the last ' || drop_text
                                                || ', and it is not proven durable yet')
               ELSE said('young', 'its range ended in the last ' || drop_text)
           END AS age
    FROM aged
)
SELECT * EXCLUDE (age),
       CASE WHEN len(holds) > 0 THEN 'held' WHEN pinned THEN 'unmarked' WHEN NOT due THEN 'keep'
            WHEN len(shut) > 0 THEN 'wait' ELSE 'sweep' END AS decision,
       CASE WHEN len(holds) > 0 THEN said('hold', array_to_string(holds, ', '))
            WHEN pinned THEN said('rescued', 'a person brought it back from the lake: `ebbtide tier drop` with its name '
                                             || 'drops it')
            ELSE age END AS because,
       CASE WHEN len(holds) = 0 AND NOT pinned AND due THEN shut ELSE [] END AS waits_for,
       holds AS protected_by
FROM told;
