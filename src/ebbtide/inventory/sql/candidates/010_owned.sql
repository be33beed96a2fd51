-- Every listed file with its innermost owner; those of nobody are left out. `file:///a/b` has the parts `file:`, ``, ``,
-- `a`, `b`: the store itself is never an owner.
CREATE TEMP TABLE owned AS
WITH folders AS (
    SELECT DISTINCT folder, string_split(folder, '/') AS parts FROM listed
), around AS (
    SELECT folder, unnest(list_transform(range(4, len(parts) + 1), lambda n: array_to_string(parts[1:n], '/'))) AS location
    FROM folders WHERE len(parts) >= 4
), innermost AS (
    SELECT a.folder, arg_max(o, length(o.location)) AS owner FROM around a JOIN areas o USING (location) GROUP BY a.folder
)
SELECT l.*, i.owner.location AS location, i.owner.kind AS kind, i.owner.format AS format, i.owner.table_id AS table_id,
       i.owner.metadata AS metadata, i.owner.before AS before, substr(l.path, length(i.owner.location) + 2) AS inside
FROM listed l JOIN innermost i USING (folder);
