-- copy: copy what a task writes into the table of all tasks
COPY {staging} (harvest_attempt, {columns}) FROM STDIN (FORMAT binary)

-- register_own: remember the table of a large task, unless the write has many
INSERT INTO harvest.staged (name, write)
SELECT %(own)s, write FROM harvest.staged
 WHERE name = %(name)s
   AND (SELECT count(*) FROM harvest.staged WHERE starts_with(name, %(name)s || '_')) < %(most)s

-- create_own: the table of a large task, like the table of all tasks, but without the attempt, since there is one
CREATE TABLE {own} (LIKE {staging} INCLUDING ALL) WITH (autovacuum_enabled = off);
 ALTER TABLE {own} DROP COLUMN harvest_attempt

-- copy_own: copy what a large task writes; nobody else sees the table yet, so its rows are frozen, and no reader has to look up whether they were committed
COPY {staging} ({columns}) FROM STDIN (FORMAT binary, FREEZE)

-- alone: use no more processes for the index of one task, since the other tasks have the cores
SET LOCAL max_parallel_maintenance_workers = 0

-- copied: count what a task has written, and note that the write is alive
UPDATE harvest.staged SET copied = copied + %s, touched_at = clock_timestamp() WHERE name = %s
