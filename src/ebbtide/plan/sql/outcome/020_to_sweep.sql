-- What a sweep is to do: the files of the objects that go now, with the branches whose head still references each
-- (`in_heads`) and when an orphan was written (`modified`, microseconds since 1970).
CREATE TEMP TABLE swept AS
SELECT o.did, o.table_id, o.target, o.object_id FROM objects o
JOIN planned p ON p.dataset = o.table_id AND p.target = o.target AND p.object = o.object_id WHERE p.decision = 'sweep';

CREATE TEMP TABLE files_to_sweep AS
SELECT s.table_id, s.target, s.object_id, n.path, coalesce(n.bytes, 0) AS bytes, n.role, n.modified,
       list_transform(list_filter(texts(r.names), lambda name: starts_with(name, 'branch:')),
                      lambda name: substr(name, 8)) AS in_heads
FROM named n JOIN swept s ON s.did = n.did AND s.target = n.target AND s.object_id = n.object_id
LEFT JOIN file_names r USING (fid);

-- What main's head gives up with a partition that goes now, whoever else keeps the file.
CREATE TEMP TABLE files_of_drops AS
SELECT s.table_id, s.object_id, f.path, f.bytes
FROM swept s JOIN f ON f.did = s.did AND f.partition = s.object_id JOIN file_names r USING (fid)
WHERE s.target = 'partitions' AND is_held_by_head(f.role) AND list_contains(r.names, 'branch:main');
