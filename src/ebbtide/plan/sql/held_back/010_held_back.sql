-- What keeps an erasure from a dataset (spec §3: hold, floor, erasure request, retention; §7): doubts and locks, holds,
-- statutory floors with the last day that their rows cover, and settings of the format that forbid every removal.
-- `last_day` is NULL where a partition has no date: nobody can tell then when a floor ends. `times` are settings that keep
-- what was superseded for a time; `micros` is NULL where that is not understood.
CREATE TEMP TABLE held_back AS
WITH days AS (
    SELECT did, CASE WHEN bool_and(last_day IS NOT NULL) THEN max(last_day) END AS last_day, sum(rows) AS rows
    FROM covered GROUP BY did
)
SELECT d.table_id, d.blocks, d.any_holds AS holds, d.floor_numbers, list_concat(d.floor_gc, d.floor_append) AS settings,
       days.last_day, days.rows, list_transform(d.floor_times, lambda rule: {'text': rule.text, 'micros': rule.micros}) AS times
FROM facts d LEFT JOIN days USING (did)
WHERE NOT d.former;
