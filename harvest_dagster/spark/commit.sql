-- lock: writes of one key go one after the other; taken in one order, so that there is no deadlock
SELECT pg_advisory_xact_lock(lock)
  FROM (SELECT DISTINCT hashtextextended('harvest.written ' || key, 0) AS lock
          FROM unnest(%s::text[]) AS key
         ORDER BY lock) AS ordered

-- written: the last write of each key, the newest last; behind all one of a stream, whose key is its own
SELECT write, batch, outbox, messages, first_id, last_id, tables
     , harvest_written.stream, harvest_written.total -- so that an error says where they are missing
  FROM harvest.written AS harvest_written
 WHERE key = ANY (%s)
 ORDER BY stream IS NOT NULL, at

-- known: which keys were written
SELECT key FROM harvest.written WHERE key = ANY (%s) ORDER BY key

-- is_another: whether two names are those of two tables
SELECT to_regclass(%s) <> to_regclass(%s)

-- messages: those of the attempts that count, into the outbox
WITH moved AS (
     INSERT INTO {table} ({columns})
     SELECT {values} FROM {staging} WHERE harvest_attempt = ANY (%s) {order}
  RETURNING id)
SELECT count(*), min(id), max(id) FROM moved

-- lock_part: no task writes any more
LOCK TABLE {staging} IN ACCESS EXCLUSIVE MODE

-- copied: how many rows tasks have written
SELECT copied FROM harvest.staged WHERE name = %s

-- lost: drop what does not count
DELETE FROM {staging} WHERE harvest_attempt <> ALL (%s)

-- ends: the first id, and the last
SELECT min(id), max(id) FROM {staging}

-- lacks: columns of the outbox that its part does not have, since they are the same in every row
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

-- attach: the table becomes a part of the outbox; columns are added without a look at the rows
ALTER TABLE {staging} DROP COLUMN IF EXISTS harvest_attempt, RESET (autovacuum_enabled), INHERIT {table} {added};
ALTER TABLE {staging} RENAME TO {part}

-- types: of a table's columns, without a length: a cast to a length cuts, where an insert complains
WITH RECURSIVE typed AS (
     SELECT attnum, attname, atttypid AS type
       FROM pg_attribute
      WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
      UNION ALL
     SELECT attnum, attname, typbasetype
       FROM typed JOIN pg_type ON oid = type
      WHERE typtype = 'd')
SELECT attname, format_type(type, -1)
  FROM typed JOIN pg_type ON oid = type
 WHERE typtype <> 'd'
 ORDER BY attnum

-- rows: those of the attempts that count, into a table
INSERT INTO {table} ({columns}) SELECT {values} FROM {staging} WHERE harvest_attempt = ANY (%s) {conflict}

-- vacate: make room for the rows that come instead
DELETE FROM {table} WHERE {condition}

-- record: this write is done
INSERT INTO harvest.written
       (key, write, batch, outbox, messages, total, first_id, last_id, tables, stream, passing)
VALUES (%(key)s, %(write)s, %(batch)s, %(outbox)s, %(messages)s, %(messages)s, %(first_id)s, %(last_id)s
      , %(tables)s, %(stream)s, %(passing)s)
    ON CONFLICT (key) DO UPDATE
   SET write = EXCLUDED.write, batch = EXCLUDED.batch, at = now(), outbox = EXCLUDED.outbox
     , messages = EXCLUDED.messages, first_id = EXCLUDED.first_id, last_id = EXCLUDED.last_id
     , tables = EXCLUDED.tables, stream = EXCLUDED.stream
     , total = harvest.written.total + EXCLUDED.messages

-- forget_passing: a write whose key is its own id can't be repeated after so long
DELETE FROM harvest.written WHERE passing AND at < now() - interval '1 day'
