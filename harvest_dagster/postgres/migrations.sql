-- lock: one migrator at a time, to the end of its transaction
SELECT pg_advisory_xact_lock(hashtext('harvest_dagster.migrations'))

-- schema: our own schema
CREATE SCHEMA IF NOT EXISTS harvest

-- table: which migrations this database has had
CREATE TABLE IF NOT EXISTS harvest.migration (
    version    integer     PRIMARY KEY,
    name       text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)

-- installed: whether the table of migrations is there
SELECT to_regclass('harvest.migration') IS NOT NULL

-- applied: the versions that this database has had
SELECT version FROM harvest.migration ORDER BY version

-- record: write down that a migration was applied
INSERT INTO harvest.migration (version, name) VALUES (%s, %s)
