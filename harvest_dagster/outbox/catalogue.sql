-- columns: what stash and check must know of the table's columns
SELECT a.attname                                      AS name
     , format_type(a.atttypid, NULL)                  AS type
     , CASE WHEN a.atttypid = 'varchar'::regtype AND a.atttypmod > 4
            THEN a.atttypmod - 4 END                  AS characters
     , a.attnotnull                                   AS required
     , a.atthasdef OR a.attidentity <> ''             AS filled
  FROM pg_attribute a
 WHERE a.attrelid = to_regclass(%s)
   AND a.attnum > 0
   AND NOT a.attisdropped
 ORDER BY a.attnum

-- relation: what check must know of the table itself
SELECT c.oid
     , c.relkind                                      AS kind
     , c.relpersistence = 'u'                         AS unlogged
     , c.relrowsecurity                               AS row_security
     , COALESCE(c.reloptions, '{}')                   AS options
     , EXISTS (SELECT FROM pg_index i
                 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid
                  AND i.indpred IS NULL AND i.indnkeyatts = 1 AND a.attname = 'id') AS unique_id
     , id.sequence
     , (SELECT s.seqcache FROM pg_sequence s WHERE s.seqrelid = id.sequence::regclass) AS cache
     , id.identity
     , c.relnamespace::regnamespace::text              AS schema
     , EXISTS (SELECT FROM pg_trigger t
                WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D') AS triggers
  FROM pg_class c
  LEFT JOIN LATERAL (
       SELECT pg_get_serial_sequence(c.oid::regclass::text, a.attname) AS sequence
            , a.attidentity <> ''                                      AS identity
         FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attname = 'id' AND c.relkind IN ('r', 'p')) id ON true
 WHERE c.oid = to_regclass(%s)
