-- One row a right that looking for people, or taking them out, needs: whether the role has it, what it is, and the
-- statement that gives it.
SELECT has_table_privilege(c.oid, r.name), r.name || ' on the table',
       format('GRANT %%s ON %%I.%%I TO %%I', r.name, n.nspname, c.relname, current_user)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, unnest(%(rights)s::text[]) r (name)
WHERE c.oid = %(oid)s
UNION ALL
SELECT has_schema_privilege(c.relnamespace, 'USAGE'), 'USAGE on the schema',
       format('GRANT USAGE ON SCHEMA %%I TO %%I', n.nspname, current_user)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %(oid)s
UNION ALL
SELECT has_database_privilege(current_database(), 'TEMP'), 'TEMPORARY on the database',
       format('GRANT TEMPORARY ON DATABASE %%I TO %%I', current_database(), current_user)
UNION ALL
SELECT NOT row_security_active(c.oid), 'sight of all rows: a row-level policy hides some',
       format('ALTER ROLE %%I BYPASSRLS', current_user)
FROM pg_class c WHERE c.oid = %(oid)s
