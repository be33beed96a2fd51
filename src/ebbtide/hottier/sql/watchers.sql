-- Whether what `tier init` brings is there, whole and switched on.
SELECT (SELECT count(*) FROM pg_event_trigger
        WHERE evtname IN ('ebbtide_ddl', 'ebbtide_rewrite') AND evtenabled = 'A') = 2
   AND (SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE n.nspname = 'ebbtide' AND p.proname IN ('refuse_fenced', 'refuse_late')) = 2
