-- One row about the server's log: whether the role may list its files, whether it is archived, the seconds between
-- checkpoints, the bytes of a file, and the statement that lets the role list them.
SELECT has_function_privilege('pg_catalog.pg_ls_waldir()', 'EXECUTE'), current_setting('archive_mode') <> 'off',
       (SELECT setting::int FROM pg_settings WHERE name = 'checkpoint_timeout'),
       (SELECT setting::int FROM pg_settings WHERE name = 'wal_segment_size'),
       format('GRANT pg_monitor TO %I', current_user)
