-- What `tier init` brings to a server: what answers late and fenced writers, and what writes DDL into the log.
CREATE SCHEMA IF NOT EXISTS ebbtide;
GRANT USAGE ON SCHEMA ebbtide TO PUBLIC;

CREATE OR REPLACE FUNCTION ebbtide.refuse_fenced() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'chunk % of table % is being moved to the lake: it takes no more writes', TG_ARGV[1], TG_ARGV[0]
        USING ERRCODE = 'check_violation', HINT = 'try again in a moment: the chunk is then gone, or open again';
END $$;

CREATE OR REPLACE FUNCTION ebbtide.refuse_late() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'too late for table %: its rows of % were dropped from the hot tier', TG_ARGV[0], TG_ARGV[1]
        USING ERRCODE = 'check_violation', HINT = TG_ARGV[2];
END $$;

CREATE OR REPLACE FUNCTION ebbtide.tell_ddl() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
    command record;
BEGIN
    FOR command IN
        SELECT objid, command_tag FROM pg_event_trigger_ddl_commands()
        WHERE command_tag IN ('ALTER TABLE', 'ALTER PUBLICATION')
    LOOP
        PERFORM pg_logical_emit_message(true, 'ebbtide.ddl', command.command_tag || ':' || command.objid::text);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION ebbtide.tell_rewrite() RETURNS event_trigger LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
    PERFORM pg_logical_emit_message(true, 'ebbtide.rewrite', pg_event_trigger_table_rewrite_oid()::text);
END $$;

DROP EVENT TRIGGER IF EXISTS ebbtide_ddl;
CREATE EVENT TRIGGER ebbtide_ddl ON ddl_command_end EXECUTE FUNCTION ebbtide.tell_ddl();
ALTER EVENT TRIGGER ebbtide_ddl ENABLE ALWAYS;

DROP EVENT TRIGGER IF EXISTS ebbtide_rewrite;
CREATE EVENT TRIGGER ebbtide_rewrite ON table_rewrite EXECUTE FUNCTION ebbtide.tell_rewrite();
ALTER EVENT TRIGGER ebbtide_rewrite ENABLE ALWAYS
