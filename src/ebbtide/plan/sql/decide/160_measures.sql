-- How much goes of each dataset, by verb, each file once: what is freed, what leaves heads, and the heads that lose more
-- than their limit (spec §2, "Limits"; invariant 8).
CREATE TEMP TABLE measures AS
WITH freed AS (
    SELECT did,
           coalesce(sum(bytes) FILTER (verb = 'mark'), 0)::BIGINT AS mark_bytes,
           count(*) FILTER (verb = 'mark') AS mark_files,
           coalesce(sum(bytes) FILTER (verb = 'sweep'), 0)::BIGINT AS sweep_bytes,
           count(*) FILTER (verb = 'sweep') AS sweep_files
    FROM (SELECT DISTINCT did, path, bytes, verb FROM named WHERE verb IS NOT NULL) GROUP BY did
), whole AS (
    SELECT did, sum(bytes)::BIGINT AS all_bytes FROM f GROUP BY did
), lost AS (
    SELECT did,
           coalesce(sum(bytes) FILTER (verb = 'mark'), 0)::BIGINT AS mark_left,
           coalesce(sum(bytes) FILTER (verb = 'sweep'), 0)::BIGINT AS sweep_left
    FROM (SELECT DISTINCT did, fid, bytes, verb FROM leaving WHERE counts AND verb IS NOT NULL) GROUP BY did
), per_head AS (
    -- A branch that is dropped leaves its head whole.
    SELECT did, branch, verb, sum(bytes)::BIGINT AS left_
    FROM (SELECT DISTINCT did, branch, fid, bytes, verb FROM leaving
          WHERE counts AND target <> 'branches' AND verb IS NOT NULL) GROUP BY did, branch, verb
), live AS (
    SELECT did, substr(head, 8) AS branch, sum(bytes)::BIGINT AS live
    FROM (SELECT f.did, f.bytes, unnest(list_filter(n.names, lambda name: starts_with(name, 'branch:'))) AS head
          FROM f JOIN file_names n USING (fid)
          WHERE f.live AND is_held_by_head(f.role) AND f.did IN (SELECT did FROM leaving))
    GROUP BY did, branch
), past AS (
    SELECT did, list({'branch': branch, 'left': left_, 'live': live} ORDER BY branch, left_, live)
                    FILTER (verb = 'mark') AS mark_heads,
           list({'branch': branch, 'left': left_, 'live': live} ORDER BY branch, left_, live)
                    FILTER (verb = 'sweep') AS sweep_heads
    FROM per_head JOIN live USING (did, branch) CROSS JOIN moment
    WHERE left_ > min_bytes AND left_ > live * max_share GROUP BY did
)
SELECT did, table_id, coalesce(all_bytes, coalesce(mark_bytes, 0) + coalesce(sweep_bytes, 0)) AS all_bytes,
       coalesce(mark_bytes, 0) AS mark_bytes, coalesce(mark_files, 0) AS mark_files,
       coalesce(sweep_bytes, 0) AS sweep_bytes, coalesce(sweep_files, 0) AS sweep_files,
       coalesce(mark_left, 0) AS mark_left, coalesce(sweep_left, 0) AS sweep_left,
       coalesce(mark_heads, []) AS mark_heads, coalesce(sweep_heads, []) AS sweep_heads
FROM whole FULL JOIN freed USING (did) LEFT JOIN lost USING (did) LEFT JOIN past USING (did)
JOIN datasets USING (did);
