-- register: remember a staging table, so that a later writer finds it if this one dies
INSERT INTO harvest.staged (name, write) VALUES (%s, %s)

-- lock_name: let one task after another look whether the staging table was created, since they start at once
SELECT pg_advisory_xact_lock(hashtextextended('harvest.staged ' || %s, 0))

-- is_there: whether a staging table was created
SELECT EXISTS (SELECT FROM harvest.staged WHERE name = %s)

-- create: a staging table that has the columns of what is staged
CREATE UNLOGGED TABLE {staging} WITH (autovacuum_enabled = off) AS
SELECT 0::bigint AS harvest_attempt, {columns} {source} WITH NO DATA

-- source: the table from which a staging table takes its columns' types
FROM {table}

-- attachable: no row unless a table like the outbox may become a part of it; the sequence of its ids, whether the primary key is its only index, and the columns that are the same in every row and that nothing else depends on
SELECT pg_get_serial_sequence(c.oid::regclass::text, 'id')
     , (SELECT count(*) = 1 AND bool_and(i.indisprimary AND i.indkey::text = a.attnum::text)
          FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'id'
         WHERE i.indrelid = c.oid)
     , ARRAY(SELECT a.attname::text
               FROM pg_attribute a
               JOIN pg_type t ON t.oid = a.atttypid AND t.typtype <> 'd'
               LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
              WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                AND a.attname <> 'id' AND a.attgenerated = '' AND a.attname <> ALL (%(staged)s)
                AND (a.attname = ANY (%(same)s)
                     OR d.oid IS NULL AND NOT a.attnotnull
                     OR pg_get_expr(d.adbin, d.adrelid) ~ '^''[^'']*''::[a-z ]+([[][]])?$'
                     OR pg_get_expr(d.adbin, d.adrelid) IN ('now()', 'CURRENT_TIMESTAMP')
                        AND a.atttypid = 'timestamptz'::regtype)
                AND NOT EXISTS (SELECT FROM pg_depend p -- an index, a constraint, a generated column
                                  LEFT JOIN pg_constraint k
                                    ON (p.classid, p.objid) = ('pg_constraint'::regclass, k.oid)
                                 WHERE p.refclassid = 'pg_class'::regclass
                                   AND (p.refobjid, p.refobjsubid) = (c.oid, a.attnum::int)
                                   AND p.classid <> 'pg_rewrite'::regclass
                                   AND (d.oid IS NULL OR (p.classid, p.objid) <> ('pg_attrdef'::regclass, d.oid))
                                   AND k.contype IS DISTINCT FROM 'n'))
  FROM pg_class c
 WHERE c.oid = to_regclass(%(outbox)s)
   AND c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity
   AND pg_has_role(c.relowner, 'USAGE')
   AND NOT EXISTS (SELECT FROM pg_constraint k -- of the row as a whole
                    WHERE k.conrelid = c.oid AND 0 = ANY (k.conkey))
   AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgenabled <> 'D')
   AND NOT EXISTS (SELECT FROM pg_publication_tables p
                    WHERE p.schemaname = c.relnamespace::regnamespace::text
                      AND p.tablename = c.relname)
   AND NOT EXISTS (SELECT FROM pg_attribute a
                    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                      AND (a.attnotnull OR a.attname = 'create_time')
                      AND NOT a.atthasdef AND (a.attidentity = '' OR a.attname <> 'id')
                      AND a.attname <> ALL (%(staged)s) AND a.attname <> ALL (%(same)s))

-- create_part: a staging table that is like the outbox, so that it may become a part of it
CREATE TABLE {staging} (LIKE {table} INCLUDING ALL EXCLUDING IDENTITY EXCLUDING STATISTICS {indexes}
                      , harvest_attempt bigint) WITH (autovacuum_enabled = off);
 ALTER TABLE {staging} ALTER id SET DEFAULT nextval({sequence})

-- without_indexes: for a table that is indexed when it is full: to fill an index row by row takes as long as to copy the rows
EXCLUDING INDEXES

-- same: give a column the value that it has in every row
ALTER TABLE {staging} ALTER {column} SET DEFAULT {value}

-- without: drop the columns that are the same in every row: no row is written with them, and since the commit adds them, messages are as old as the commit and not as their tasks
ALTER TABLE {staging} {dropped}

-- is_part: whether a staging table is like its outbox, so that it may become a part of it
SELECT EXISTS (SELECT FROM pg_attribute
                WHERE attrelid = to_regclass(%s) AND attname = 'id' AND NOT attisdropped)

-- own: the tables of large tasks
SELECT name FROM harvest.staged WHERE starts_with(name, %s || '_')

-- has_index: whether a staging table is filled with its indexes
SELECT relhasindex FROM pg_class WHERE oid = to_regclass(%s)

-- index: index a table that was filled without indexes
ALTER TABLE {staging} ADD PRIMARY KEY (id)

-- settle: note the attempts that count, and how many rows they have staged
UPDATE harvest.staged SET attempts = %s, rows = %s, touched_at = clock_timestamp() WHERE name = %s

-- settled: what `settle` has noted
SELECT attempts, rows FROM harvest.staged WHERE name = %s AND attempts IS NOT NULL

-- end_tasks: end the tasks of a write that is over, as when another attempt was faster
SELECT pg_terminate_backend(pid)
  FROM pg_locks JOIN pg_stat_activity USING (pid)
 WHERE relation = to_regclass(%s) AND datname = current_database()
   AND application_name = 'harvest spark' AND pid <> pg_backend_pid()

-- lock_time: how long to wait for a table that is in use
SET LOCAL lock_timeout = '2s'

-- drop: drop a staging table
DROP TABLE IF EXISTS {staging}

-- forget: forget a staging table
DELETE FROM harvest.staged WHERE name = %s
