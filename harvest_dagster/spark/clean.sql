-- dead: staging tables of writes of which nothing, first or last staged, was touched for so long
SELECT unnest(array_agg(name)) FROM harvest.staged
 GROUP BY write HAVING max(touched_at) < now() - %s
 ORDER BY max(touched_at) LIMIT 100

-- parts: tables of ours that are attached to an outbox
SELECT c.relname
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE c.relnamespace = to_regnamespace('harvest_staging') AND pg_has_role(c.relowner, 'USAGE')

-- holds_rows: whether anything of a part is left
SELECT EXISTS (SELECT FROM (SELECT id FROM {part} ORDER BY id LIMIT 1) AS first)

-- lock_time: how long to wait for a part that is in use
SET LOCAL lock_timeout = '2s'

-- lock: nobody uses the part
LOCK TABLE {part} IN ACCESS EXCLUSIVE MODE

-- drop_part: of which nothing is left
DROP TABLE {part}
