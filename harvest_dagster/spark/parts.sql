-- lock_part: wait until no task writes any more
LOCK TABLE {staging} IN ACCESS EXCLUSIVE MODE

-- copied: how many rows all attempts have staged
SELECT copied FROM harvest.staged WHERE name = %s

-- lost: delete the rows of attempts that do not count
DELETE FROM {staging} WHERE harvest_attempt <> ALL (%s)

-- ends: the first id, and the last
SELECT min(id), max(id) FROM {staging}

-- lacks: clauses that add the columns of the outbox that its part lacks, since they are the same in every row
SELECT COALESCE(string_agg(concat_ws(' '
     , ', ADD COLUMN', quote_ident(a.attname), format_type(a.atttypid, a.atttypmod)
     , CASE WHEN a.attcollation <> t.typcollation THEN 'COLLATE ' || a.attcollation::regcollation END
     , 'DEFAULT ' || COALESCE(quote_literal(%(same)s::jsonb ->> a.attname), pg_get_expr(d.adbin, d.adrelid))
     , CASE WHEN a.attnotnull THEN 'NOT NULL' END), ' ' ORDER BY a.attnum), '')
  FROM pg_attribute a
  JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
 WHERE a.attrelid = to_regclass(%(outbox)s) AND a.attnum > 0 AND NOT a.attisdropped
   AND NOT EXISTS (SELECT FROM pg_attribute has
                    WHERE has.attrelid = to_regclass(%(part)s) AND has.attname = a.attname
                      AND NOT has.attisdropped)

-- attach: make a staging table a part of the outbox; PostgreSQL adds columns without reading the rows
ALTER TABLE {staging} DROP COLUMN IF EXISTS harvest_attempt, RESET (autovacuum_enabled), INHERIT {table} {added};
ALTER TABLE {staging} RENAME TO {part}
