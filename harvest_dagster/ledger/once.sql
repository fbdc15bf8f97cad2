-- lock: let the writes of a key come one after the other; all writers take the locks in one order, so that no two wait for each other
SELECT pg_advisory_xact_lock(lock)
  FROM (SELECT DISTINCT hashtextextended('harvest.written ' || key, 0) AS lock
          FROM unnest(%s::text[]) AS key
         ORDER BY lock) AS ordered

-- written: the last write of each key, the newest last; but that of a stream is last of all, since nobody else may use its key
SELECT asked, known_by, write, batch, outbox, messages, first_id, last_id, tables, stream, total
  FROM (SELECT DISTINCT ON (asked) asked, key AS known_by, write, batch, at, outbox, messages, first_id, last_id, tables
             , harvest_written.stream, harvest_written.total -- so that an error names the table that lacks them
          FROM unnest(%s::text[], %s::text[], %s::text[]) AS sought (asked, recorded, bare)
          JOIN harvest.written AS harvest_written ON key IN (recorded, bare)
         WHERE key = recorded
            -- A bare key counts in every scope, unless its outbox is there, and is another table. That is
            -- looked up here, since to_regclass fails for a schema that the role may not use.
            OR NOT EXISTS (SELECT
                             FROM parse_ident(outbox) AS parts
                             JOIN pg_class ON relname = parts[cardinality(parts)]::name
                            WHERE pg_class.oid <> to_regclass(%s)
                              AND CASE cardinality(parts)
                                  WHEN 1 THEN pg_table_is_visible(pg_class.oid)
                                  ELSE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = parts[1]::name)
                                   END)
         ORDER BY asked, at DESC) AS known
 ORDER BY stream IS NOT NULL, at

-- full_name: an outbox's name with its schema
SELECT relnamespace::regnamespace || '.' || quote_ident(relname)
  FROM pg_class
 WHERE oid = to_regclass(%s)

-- is_another: whether two names are those of two tables
SELECT to_regclass(%s) <> to_regclass(%s)

-- record: a key's last write
INSERT INTO harvest.written
       (key, write, batch, outbox, messages, total, first_id, last_id, tables, stream, passing)
VALUES (%(key)s, %(write)s, %(batch)s, %(outbox)s, %(messages)s, %(messages)s, %(first_id)s, %(last_id)s
      , %(tables)s, %(stream)s, %(passing)s)
    ON CONFLICT (key) DO UPDATE
   SET write = EXCLUDED.write, batch = EXCLUDED.batch, at = now(), outbox = EXCLUDED.outbox
     , messages = EXCLUDED.messages, first_id = EXCLUDED.first_id, last_id = EXCLUDED.last_id
     , tables = EXCLUDED.tables, stream = EXCLUDED.stream
     , total = harvest.written.total + EXCLUDED.messages

-- forget_passing: the keys that nobody has given; after a day nobody asks for such a write again
DELETE FROM harvest.written WHERE passing AND at < now() - interval '1 day'
