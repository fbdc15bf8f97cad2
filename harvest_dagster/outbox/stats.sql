-- totals: how much waits in the outbox
SELECT count(*)                                                   AS records
     , min(id)                                                    AS first_id
     , max(id)                                                    AS last_id
     , extract(epoch FROM clock_timestamp() - min(create_time))::float8 AS oldest_seconds
     , COALESCE(sum(octet_length(kafka_value)), 0)::bigint        AS value_bytes
  FROM {table}

-- topics: the topics for which most waits
SELECT kafka_topic AS topic, count(*) AS records
  FROM {table}
 GROUP BY kafka_topic
 ORDER BY records DESC, topic
 LIMIT %s

-- storage: the table on disk, and how vacuum keeps up
SELECT pg_total_relation_size(c.oid)              AS disk_bytes
     , COALESCE(s.n_dead_tup, 0)                  AS dead_rows
     , GREATEST(s.last_vacuum, s.last_autovacuum) AS last_vacuum
  FROM pg_class c
  LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
 WHERE c.oid = to_regclass(%s)
