-- topics: how many of the first records that wait are for which topic, most first
SELECT kafka_topic, count(*)
  FROM (SELECT kafka_topic FROM {table} ORDER BY id LIMIT %(most)s) AS waiting
 GROUP BY kafka_topic
 ORDER BY count(*) DESC, kafka_topic
 LIMIT %(topics)s

-- backlog: how many records wait, up to a bound, their ends, and the age of the first
SELECT (SELECT count(*) FROM (SELECT FROM {table} LIMIT %(most)s) AS waiting)
     , (SELECT min(id) FROM {table})
     , (SELECT max(id) FROM {table})
     , (SELECT extract(epoch FROM clock_timestamp() - create_time)::float8
          FROM {table} ORDER BY id LIMIT 1)
