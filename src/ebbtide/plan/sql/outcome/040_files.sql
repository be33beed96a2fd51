-- The files that objects name, as the plan file lists them.
CREATE TEMP VIEW named_files AS
SELECT d.table_id, n.target, n.object_id, n.path, n.bytes, n.rows, n.decision FROM named n JOIN datasets d USING (did);
