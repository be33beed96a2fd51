-- Folders that look like tables and that no catalog lists.
CREATE TEMP TABLE unregistered AS
SELECT location, count(*) AS files, sum(bytes)::BIGINT AS bytes, max(modified_at) AS newest,
       max(path) FILTER (regexp_matches(path, '(?s)^(.*)/metadata/[^/]*\.metadata\.json(?:\.gz)?$')) AS metadata
FROM owned WHERE kind = 'unregistered' GROUP BY location;
