-- One row an identity column of a table, with the schema and the name of its sequence.
SELECT a.attname::text, n.nspname::text, s.relname::text
FROM pg_attribute a
JOIN pg_depend d ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'i'
    AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_namespace n ON n.oid = s.relnamespace
WHERE a.attrelid = %(oid)s AND a.attidentity <> ''
ORDER BY a.attnum
