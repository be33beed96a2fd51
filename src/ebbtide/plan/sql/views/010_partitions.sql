-- The view `partitions`: the days that each covers. A table that has none is a row of its own, without a `partition`, by
-- its last write; one with a schedule by the begin of its month or year. Also one that was partitioned once: what it
-- holds now lies in no partition.
CREATE TEMP TABLE partitions_view AS
WITH written AS (
    SELECT d.did, d.table_id, make_timestamptz(w.instant) AS landed_at,
           CASE right(d.schedule, 1)
               WHEN 'm' THEN date_trunc('month', make_timestamp(w.instant))::DATE
               WHEN 'y' THEN date_trunc('year', make_timestamp(w.instant))::DATE
               ELSE make_timestamp(w.instant)::DATE
           END AS day
    FROM datasets d JOIN last_writes w USING (did)
    WHERE d.table_id NOT IN (SELECT table_id FROM in_partitions)
), sums AS (
    SELECT table_id, sum(rows)::BIGINT AS rows, count(*) AS files, sum(bytes)::BIGINT AS bytes
    FROM in_files WHERE live AND role = 'data' GROUP BY table_id
), newest AS (
    SELECT did, arg_max(tid, {'instant': instant, 'position': position}) AS last_transaction FROM tx GROUP BY did
), every AS (
    SELECT table_id, partition, _date, first_day, last_day, landed_at, rows, files, bytes, last_transaction
    FROM in_partitions
    UNION ALL
    SELECT w.table_id, NULL, w.day, w.day, w.day, w.landed_at, coalesce(s.rows, 0), coalesce(s.files, 0),
           coalesce(s.bytes, 0), n.last_transaction
    FROM written w LEFT JOIN sums s USING (table_id) LEFT JOIN newest n USING (did)
)
SELECT e.* REPLACE (first_covered(e.first_day, d.time_grain, d.schedule, d.covers) AS first_day,
                    last_covered(e.first_day, e.last_day, d.time_grain, d.schedule, d.covers) AS last_day)
FROM every e JOIN datasets d USING (table_id);
