-- What deleted partitions wait for: names that keep a file, and versions that are not yet old enough. A dataset whose
-- versions no policy looks at is not in `kept`: nothing there frees a version.
CREATE TEMP TABLE partition_waits AS
WITH gone AS (
    SELECT p.did, p.object_id, p.stay, r.first, r.last
    FROM partition_files p LEFT JOIN runs r USING (fid) WHERE NOT p.in_head AND p.decision = 'ready'
), found AS (
    SELECT g.did, g.object_id, flatten(list(list_concat(g.stay,
               CASE WHEN is_beside(g.first) THEN [changelog()]
                    WHEN k.position IS NOT NULL
                        THEN only_if(coalesce(k.now <= g.last, false), ['version:' || k.now_id])
                    WHEN g.first IS NOT NULL THEN [unexpired_versions()]
                    ELSE []::VARCHAR[] END))) AS waits
    FROM gone g LEFT JOIN kept k ON k.did = g.did AND k.position = g.first
    GROUP BY g.did, g.object_id
)
SELECT f.did, 'partitions' AS target, f.object_id,
       joined(list_concat(f.waits, only_if(NOT o.then_versions AND len(f.waits) > 0, [versions_target()])))
           AS waits
FROM found f JOIN partition_objects o USING (did, object_id);
