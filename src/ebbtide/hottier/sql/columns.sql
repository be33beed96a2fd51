-- One row a column of a table, in the order of its attributes: its base type behind domains, or that of its elements
-- where it is an array, its place in the key, whether rows of a partition have a value of it that nobody wrote (ADD COLUMN
-- with a default rewrites none of them), and whether it may not be empty, there or in a partition.
WITH RECURSIVE attribute AS (
    SELECT a.attname, a.attnum, a.attnotnull, a.attgenerated, a.atttypid AS type, a.atttypmod AS modifier
    FROM pg_attribute a
    WHERE a.attrelid = %(oid)s AND a.attnum > 0 AND NOT a.attisdropped
), base AS (
    SELECT attnum, type, modifier FROM attribute
    UNION ALL
    SELECT b.attnum, y.typbasetype, CASE WHEN b.modifier = -1 THEN y.typtypmod ELSE b.modifier END
    FROM base b JOIN pg_type y ON y.oid = b.type
    WHERE y.typtype = 'd'
), key AS (
    SELECT unnest(i.indkey::int2[]) AS attnum FROM pg_index i WHERE i.indrelid = %(oid)s AND i.indisprimary
)
SELECT a.attname::text, a.attnum::int, a.attnum IN (SELECT attnum FROM key), a.attgenerated <> '',
       coalesce(e.typname, y.typname)::text, coalesce(e.typtype, y.typtype)::text, e.oid IS NOT NULL, b.modifier, format_type(a.type, a.modifier),
       EXISTS (
           SELECT FROM pg_inherits i JOIN pg_attribute l ON l.attrelid = i.inhrelid
           WHERE i.inhparent = %(oid)s AND l.attname = a.attname AND l.atthasmissing
       ),
       a.attnotnull OR EXISTS (
           SELECT FROM base d JOIN pg_type n ON n.oid = d.type WHERE d.attnum = a.attnum AND n.typnotnull
       ) OR EXISTS (
           SELECT FROM pg_inherits i JOIN pg_attribute l ON l.attrelid = i.inhrelid
           WHERE i.inhparent = %(oid)s AND l.attname = a.attname AND l.attnotnull
       )
FROM attribute a
JOIN base b ON b.attnum = a.attnum
JOIN pg_type y ON y.oid = b.type AND y.typtype <> 'd'
LEFT JOIN pg_type e ON e.typarray = y.oid
ORDER BY a.attnum
