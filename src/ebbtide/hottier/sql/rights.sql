-- One row a right: whether only a table that is mirrored needs it, whether the role has it, and the statement that gives it.
SELECT 'REPLICATION', true, r.rolsuper OR r.rolreplication, format('ALTER ROLE %%I REPLICATION', r.rolname)
FROM pg_roles r WHERE r.rolname = current_user
UNION ALL
SELECT 'CREATE on the database', true, has_database_privilege(current_database(), 'CREATE'),
       format('GRANT CREATE ON DATABASE %%I TO %%I', current_database(), current_user)
UNION ALL
SELECT 'CREATE on the schema', true, has_schema_privilege(c.relnamespace, 'CREATE'),
       format('GRANT CREATE ON SCHEMA %%I TO %%I', n.nspname, current_user)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %(oid)s
UNION ALL
SELECT 'ownership of the table', false, pg_has_role(c.relowner, 'USAGE'),
       format('GRANT %%I TO %%I', pg_get_userbyid(c.relowner), current_user)
FROM pg_class c WHERE c.oid = %(oid)s
