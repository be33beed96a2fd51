-- Files by number; the runs of versions that reference each, and the names of those that do.
CREATE TEMP TABLE f AS
SELECT row_number() OVER ()::INTEGER AS fid, d.did, s.path, s.role, s.bytes, s.rows, s.first_transaction AS adder,
       s.partition, s.versions, s.live
FROM in_files s JOIN datasets d USING (table_id) WHERE NOT d.former;

CREATE TEMP TABLE runs AS
SELECT fid, did, run.first AS first, run.last AS last FROM (SELECT fid, did, unnest(versions) AS run FROM f);

-- Paths that several datasets reference (hazard 18), by what they are to each of them.
CREATE TEMP TABLE sharing AS
SELECT f.fid, list_transform(list_filter(s.datasets, lambda other: other <> d.table_id),
                             lambda other: 'reference:' || other) AS others
FROM f JOIN shared s USING (path) JOIN datasets d USING (did);

CREATE TEMP TABLE file_names AS
SELECT fid, list(DISTINCT name) AS names
FROM runs JOIN refs USING (did) WHERE refs.position BETWEEN runs.first AND runs.last GROUP BY fid;
