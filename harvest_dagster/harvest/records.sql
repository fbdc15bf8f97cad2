-- head: the next records beyond the head in the order of their ids, up to a number and a size
SELECT {columns}
     , (SELECT COALESCE(sum(inhrelid::bigint), 0)::bigint -- another one with each new part
          FROM pg_inherits
         WHERE inhparent = to_regclass({name}))
  FROM (SELECT *, sum(octet_length(kafka_value)) OVER (ORDER BY id
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
          FROM {table}
         WHERE id > %(after)s
         ORDER BY id
         LIMIT %(limit)s) AS record
 WHERE COALESCE(bytes_before, 0) < %(bytes)s
 ORDER BY id

-- sweep: records up to the head that no claim holds, whatever made them appear there
SELECT {columns}, NULL::bigint
  FROM (SELECT *, sum(octet_length(kafka_value)) OVER (ORDER BY id
                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
          FROM {table}
         WHERE id > %(after)s
           AND id <= %(head)s
           AND NOT id::bigint <@ COALESCE((SELECT range_agg(part)
                                     FROM harvest.claim c, unnest(c.ids - c.holes) AS part
                                    WHERE c.name = %(name)s AND c.shard = %(shard)s), '{{}}')
         ORDER BY id
         LIMIT %(limit)s) AS record
 WHERE COALESCE(bytes_before, 0) < %(bytes)s
 ORDER BY id

-- claimed: what is left of the records of a claim
SELECT {columns}, NULL::bigint
  FROM unnest(%(ids)s::int8multirange) AS part
 CROSS JOIN LATERAL (SELECT * FROM {table}
                      WHERE id BETWEEN lower(part) AND upper(part) - 1) AS o
 ORDER BY id

-- gaps: records that appeared in ranges of ids that were missing
SELECT {columns}, NULL::bigint
  FROM (SELECT o.*, sum(octet_length(kafka_value)) OVER (ORDER BY id
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
          FROM unnest(%(lows)s::bigint[], %(highs)s::bigint[]) AS gap(low, high)
         CROSS JOIN LATERAL (SELECT * FROM {table}
                              WHERE id BETWEEN gap.low AND gap.high
                              ORDER BY id LIMIT %(limit)s) AS o
         ORDER BY id
         LIMIT %(limit)s) AS record
 WHERE COALESCE(bytes_before, 0) < %(bytes)s
 ORDER BY id

-- running: the transactions that run in this database, open ones by virtual id, prepared ones by gid
SELECT ARRAY(SELECT l.virtualxid
               FROM pg_locks l
               JOIN pg_stat_activity a ON a.pid = l.pid
              WHERE l.locktype = 'virtualxid' AND l.granted AND l.mode = 'ExclusiveLock'
                AND a.datname = current_database() AND l.pid <> pg_backend_pid())
     , ARRAY(SELECT p.gid FROM pg_prepared_xacts p WHERE p.database = current_database())

-- drawn: the last id that was drawn from the table's sequence, where we may know
SELECT pg_sequence_last_value(pg_get_serial_sequence(%(table)s, 'id')::regclass)
