-- dead: the staging tables of writes that have touched none of theirs for so long
SELECT unnest(array_agg(name)) FROM harvest.staged
 GROUP BY write HAVING max(touched_at) < now() - %s
 ORDER BY max(touched_at) LIMIT 100

-- parts: our tables that are attached to an outbox
SELECT c.relname
  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE c.relnamespace = to_regnamespace('harvest_staging') AND pg_has_role(c.relowner, 'USAGE')

-- holds_rows: whether a part has any rows left
SELECT EXISTS (SELECT FROM (SELECT id FROM {part} ORDER BY id LIMIT 1) AS first)

-- lock_time: how long to wait for a part that is in use
SET LOCAL lock_timeout = '2s'

-- lock: wait until nobody uses a part
LOCK TABLE {part} IN ACCESS EXCLUSIVE MODE

-- drop_part: drop a part that has no rows left
DROP TABLE {part}
