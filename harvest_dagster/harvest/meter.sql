-- backlog: how many records wait, up to a bound, their ends, and the age of the first
SELECT (SELECT count(*) FROM (SELECT FROM {table} LIMIT %(most)s) AS waiting)
     , (SELECT min(id) FROM {table})
     , (SELECT max(id) FROM {table})
     , (SELECT extract(epoch FROM clock_timestamp() - create_time)::float8
          FROM {table} ORDER BY id LIMIT 1)
