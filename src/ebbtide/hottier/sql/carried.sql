-- One row a statement that gives what a plain table has to the partitioned one that took its name, with the place that
-- it stands at: 1 before the old table is renamed, 2 before it is attached, 3 after that. Definitions name the table as
-- it is called now: run after the renaming, they mean the new one.
WITH t AS (
    SELECT c.*, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %(oid)s
), index AS (
    SELECT x.indexrelid, c.relname, k.oid AS constraint_id
    FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
    LEFT JOIN pg_constraint k ON k.conindid = x.indexrelid AND k.conrelid = x.indrelid AND k.contype IN ('p', 'u')
    WHERE x.indrelid = %(oid)s
), identity AS (
    SELECT a.attname, a.attidentity, s.*
    FROM pg_attribute a
    JOIN pg_depend d ON d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'i'
        AND d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
    JOIN pg_sequence s ON s.seqrelid = d.objid
    WHERE a.attrelid = %(oid)s AND a.attidentity <> ''
), triggers AS (
    SELECT * FROM pg_trigger WHERE tgrelid = %(oid)s AND NOT tgisinternal
), grants AS (
    SELECT NULL::name AS attname, (aclexplode(relacl)).* FROM t
    UNION ALL
    SELECT attname, (aclexplode(attacl)).* FROM pg_attribute
    WHERE attrelid = %(oid)s AND attacl IS NOT NULL AND NOT attisdropped
), defaults AS (
    -- Whoever makes the new table gives it what its default privileges say, which the old one may refuse.
    SELECT DISTINCT (aclexplode(defaclacl)).grantee
    FROM t JOIN pg_default_acl d ON d.defaclnamespace IN (0, t.relnamespace)
    WHERE d.defaclobjtype = 'r' AND d.defaclrole = (SELECT oid FROM pg_roles WHERE rolname = current_user)
)
SELECT 1, 1, relname, format('ALTER INDEX %%I.%%I RENAME TO %%I', nspname, index.relname, left(index.relname, 56) || '_before')
FROM index CROSS JOIN (SELECT nspname FROM t) n
UNION ALL
SELECT 2, 1, conname, format('ALTER TABLE %%I.%%I ADD CONSTRAINT %%I %%s', nspname, relname, conname, pg_get_constraintdef(k.oid))
FROM pg_constraint k CROSS JOIN t WHERE k.conrelid = t.oid AND contype IN ('p', 'u', 'f', 'c') AND conname <> %(promise)s
UNION ALL
SELECT 2, 2, relname, pg_get_indexdef(indexrelid) FROM index WHERE constraint_id IS NULL
UNION ALL
SELECT 2, 3, '', format('ALTER TABLE %%I.%%I REPLICA IDENTITY FULL', nspname, relname) FROM t WHERE relreplident = 'f'
UNION ALL
SELECT 2, 4, a.attname, format('ALTER SEQUENCE %%s OWNED BY %%I.%%I.%%I', d.objid::regclass, nspname, t.relname, a.attname)
FROM t JOIN pg_depend d ON d.refobjid = t.oid AND d.deptype = 'a' AND d.classid = 'pg_class'::regclass
    AND d.refclassid = 'pg_class'::regclass
JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
UNION ALL
SELECT 2, 5, attname, format('ALTER TABLE %%I.%%I ALTER COLUMN %%I DROP IDENTITY', nspname, %(before)s::text, attname)
FROM identity CROSS JOIN t
UNION ALL
SELECT 2, 6, tgname, format('DROP TRIGGER %%I ON %%I.%%I', tgname, nspname, %(before)s::text) FROM triggers CROSS JOIN t
UNION ALL
SELECT 3, 1, attname, format(
    'ALTER TABLE %%I.%%I ALTER COLUMN %%I ADD GENERATED %%s AS IDENTITY (START WITH %%s INCREMENT BY %%s MINVALUE %%s'
    ' MAXVALUE %%s CACHE %%s%%s)',
    nspname, relname, attname, CASE attidentity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END,
    seqstart, seqincrement, seqmin, seqmax, seqcache, CASE WHEN seqcycle THEN ' CYCLE' ELSE '' END)
FROM identity CROSS JOIN t
UNION ALL
SELECT 3, 2, tgname, pg_get_triggerdef(oid) FROM triggers
UNION ALL
SELECT 3, 3, tgname, format('ALTER TABLE %%I.%%I %%s TRIGGER %%I', nspname, relname,
                            CASE tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE REPLICA' END, tgname)
FROM triggers CROSS JOIN t WHERE tgenabled <> 'O'
UNION ALL
SELECT 3, 4, grantee::text, format('REVOKE ALL ON %%I.%%I FROM %%s', nspname, relname,
              CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
FROM defaults CROSS JOIN t WHERE grantee <> relowner
UNION ALL
SELECT 3, 5, grantee::text || privilege_type, format('GRANT %%s%%s ON %%I.%%I TO %%s%%s', privilege_type,
              CASE WHEN g.attname IS NULL THEN '' ELSE format(' (%%I)', g.attname) END, nspname, t.relname,
              CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
              CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM grants g CROSS JOIN t WHERE grantee <> t.relowner
UNION ALL
SELECT 3, 6, p.pubname, format('ALTER PUBLICATION %%I ADD TABLE %%I.%%I', p.pubname, nspname, relname)
FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid JOIN t ON t.oid = r.prrelid
UNION ALL
SELECT 3, 7, '', format('COMMENT ON TABLE %%I.%%I IS %%L', nspname, relname, obj_description(t.oid, 'pg_class'))
FROM t WHERE obj_description(t.oid, 'pg_class') IS NOT NULL
ORDER BY 1, 2, 3, 4
