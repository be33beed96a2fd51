-- The objects as the plan file has them; those of a dataset past its limit are left out: not marked, not swept.
CREATE TEMP VIEW finished AS
WITH sums AS (
    SELECT did, target, object_id, sum(rows)::BIGINT AS rows, sum(bytes)::BIGINT AS bytes, count(*) AS files,
           sha256(string_agg(path, chr(10) ORDER BY path) || chr(10)) AS digest, min(modified) AS modified
    FROM named GROUP BY did, target, object_id
)
SELECT CASE WHEN l.text IS NULL THEN o.because.text ELSE o.because.text || '; ' || l.text END AS because,
       o.branches,
       CASE WHEN o.target NOT IN ('rows', 'chunks') THEN coalesce(s.bytes, 0) END AS bytes,
       o.cutoff,
       o.table_id AS dataset,
       CASE WHEN l.text IS NULL THEN o.decision WHEN o.decision = 'mark' THEN 'keep' ELSE 'wait' END AS decision,
       o.drops_from,
       {'count': coalesce(s.files, 0), 'digest': 'sha256:' || coalesce(s.digest, sha256(''))} AS files,
       o.fingerprint,
       CASE WHEN o.target NOT IN ('rows', 'chunks') THEN coalesce(k.kept_by, []) END AS kept_by,
       CASE WHEN o.target NOT IN ('rows', 'chunks') THEN coalesce(v.leaves, []) END AS leaves,
       o.object_id AS object,
       coalesce(p.name, ch.rule) AS policy,
       o.protected_by,
       CASE WHEN o.target = 'chunks' THEN ch.rows WHEN o.target <> 'rows' THEN coalesce(s.rows, 0) END AS rows,
       o.target,
       CASE WHEN l.text IS NOT NULL AND o.decision = 'sweep' THEN [l.text] ELSE o.waits_for END AS waits_for,
       -- What programs go by, beside the texts. The digest does not cover it (`sql/outcome/010_digest.sql`).
       CASE WHEN l.text IS NULL THEN o.because.code ELSE 'limit' END AS code,
       CASE WHEN l.text IS NOT NULL AND o.decision = 'sweep' THEN ['limit']
            ELSE list_transform(o.waits_for, lambda text: code_of(text)) END AS waits_for_codes,
       list_transform(o.protected_by, lambda text: code_of(text)) AS protected_by_codes,
       CASE o.target WHEN 'transactions' THEN instant_text(h.instant) WHEN 'versions' THEN instant_text(h.instant)
                     WHEN 'partitions' THEN strftime(c.first_day, '%Y-%m-%d')
                     WHEN 'orphans' THEN instant_text(s.modified)
                     WHEN 'chunks' THEN instant_text(ch.first_us) END AS since,
       instant_text(m.mark.grace_us) AS grace_until
FROM objects o
LEFT JOIN sums s ON s.did = o.did AND s.target = o.target AND s.object_id = o.object_id
LEFT JOIN leaves v ON v.did = o.did AND v.target = o.target AND v.object_id = o.object_id
LEFT JOIN kept_by k ON k.did = o.did AND k.target = o.target AND k.object_id = o.object_id
LEFT JOIN limited l ON l.table_id = o.table_id AND l.verb = o.decision
LEFT JOIN history h ON h.did = o.did AND h.tid = o.object_id AND o.target IN ('transactions', 'versions')
LEFT JOIN covered c ON c.did = o.did AND c.partition = o.object_id AND o.target = 'partitions'
LEFT JOIN marks m ON m.table_id = o.table_id AND m.target = o.target AND m.object_id = o.object_id
LEFT JOIN chunk_objects ch ON ch.table_id = o.table_id AND ch.object_id = o.object_id AND o.target = 'chunks'
LEFT JOIN policies p ON p.number = o.policy;
