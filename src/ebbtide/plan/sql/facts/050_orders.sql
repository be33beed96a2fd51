-- What people ordered: holds, marks that are open, unmarks that count (spec §1, §3).
CREATE TEMP TABLE held AS
SELECT table_id, list(DISTINCT {'first': partition_from, 'last': partition_to,
                                'text': 'hold:' || owner || coalesce(' (' || reason || ')', '')}) AS holds
FROM in_holds WHERE table_id IS NOT NULL GROUP BY table_id;

CREATE TEMP TABLE marks AS
SELECT m.table_id, d.did, m.target, m.object_id,
       {'policy': m.policy, 'fingerprint': m.fingerprint, 'grace_us': epoch_us(m.grace_until), 'cutoff': m.cutoff,
        'acted_us': epoch_us(m.acted_at), 'act': m.act} AS mark
FROM in_marks m LEFT JOIN datasets d USING (table_id);

-- An unmark pins the native id for every target.
CREATE TEMP TABLE pins AS
SELECT d.did, u.object_id,
       max('unmarked by a person' || coalesce(' until ' || instant_text(epoch_us(u.until)), ' until released')
           || coalesce(': ' || u.reason, '')) AS pin
FROM in_unmarks u JOIN datasets d USING (table_id) CROSS JOIN moment
WHERE u.until IS NULL OR epoch_us(u.until) > now_us
GROUP BY d.did, u.object_id;

-- What someone rescued is not removed as the changelog that a writer of Paimon made of it.
CREATE TEMP TABLE pins_of_history AS
SELECT did, object_id, max(pin) AS pin FROM (
    SELECT did, object_id, pin FROM pins
    UNION ALL
    SELECT did, regexp_replace(object_id, '/([0-9]+)$', '/changelog/\1'), pin FROM pins
) GROUP BY did, object_id;
