-- register: remember a staging table, so that it is found if its writer dies
INSERT INTO harvest.staged (name, write) VALUES (%s, %s)

-- lock_name: tasks that start at once create one staging table
SELECT pg_advisory_xact_lock(hashtextextended('harvest.staged ' || %s, 0))

-- is_there: whether a staging table was created
SELECT EXISTS (SELECT FROM harvest.staged WHERE name = %s)

-- create: a staging table, with the columns of what is staged
CREATE UNLOGGED TABLE {staging} WITH (autovacuum_enabled = off) AS
SELECT 0::bigint AS attempt, {columns} {source} WITH NO DATA

-- source: what a staging table takes its columns' types from
FROM {table}

-- copy: what a task writes
COPY {staging} (attempt, {columns}) FROM STDIN (FORMAT binary)

-- touch: tell that a write is alive
UPDATE harvest.staged SET touched_at = clock_timestamp() WHERE name = %s

-- settle: the attempts that count, and how many rows they have staged
UPDATE harvest.staged SET attempts = %s, rows = %s, touched_at = clock_timestamp() WHERE name = %s

-- settled: what `settle` has remembered
SELECT attempts, rows FROM harvest.staged WHERE name = %s AND attempts IS NOT NULL

-- end_tasks: of a write that is over, such as one that lost against another attempt
SELECT pg_terminate_backend(pid)
  FROM pg_locks JOIN pg_stat_activity USING (pid)
 WHERE relation = to_regclass(%s) AND datname = current_database()
   AND application_name = 'harvest spark' AND pid <> pg_backend_pid()

-- lock_time: how long to wait for a table that is in use
SET LOCAL lock_timeout = '2s'

-- drop: the staging table
DROP TABLE IF EXISTS {staging}

-- forget: nothing is staged under this name
DELETE FROM harvest.staged WHERE name = %s

-- dead: staging tables whose writers have been silent for so long that they are dead
SELECT name FROM harvest.staged WHERE touched_at < now() - %s ORDER BY touched_at LIMIT 100
