-- The partitions of each dataset with the days that they cover.
CREATE TEMP TABLE covered AS
SELECT d.did, p.partition, p.files, p.bytes, p.rows, p.last_transaction,
       first_covered(p.first_day, d.time_grain, d.schedule, d.covers) AS first_day,
       last_covered(p.first_day, p.last_day, d.time_grain, d.schedule, d.covers) AS last_day
FROM in_partitions p JOIN datasets d USING (table_id) WHERE NOT d.former;
