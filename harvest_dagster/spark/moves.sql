-- messages: insert the messages of the attempts that count into the outbox
WITH moved AS (
     INSERT INTO {table} ({columns})
     SELECT {values} FROM {staging} WHERE harvest_attempt = ANY (%s) {order}
  RETURNING id)
SELECT count(*), min(id), max(id) FROM moved

-- types: the types of a table's columns, without a length, since a cast to a length cuts silently where an insert complains
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

-- rows: insert the rows of the attempts that count into a table
INSERT INTO {table} ({columns}) SELECT {values} FROM {staging} WHERE harvest_attempt = ANY (%s) {conflict}

-- vacate: delete the rows that others replace
DELETE FROM {table} WHERE {condition}
