-- lock: one migrator at a time, to the end of its transaction
SELECT pg_advisory_xact_lock(hashtext('harvest_dagster.migrations'))

-- schema: our own schema
CREATE SCHEMA IF NOT EXISTS harvest

-- table: which migrations this database has had
CREATE TABLE IF NOT EXISTS harvest.migration (
    room       text        NOT NULL DEFAULT 'harvest',
    version    integer     NOT NULL,
    name       text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (room, version)
)

-- has_rooms: whether the table tells of which room a migration is
SELECT FROM pg_attribute WHERE attrelid = 'harvest.migration'::regclass AND attname = 'room'

-- rooms: let it tell that; what was applied before is all of the first line
ALTER TABLE harvest.migration
  ADD COLUMN room text NOT NULL DEFAULT 'harvest',
 DROP CONSTRAINT migration_pkey,
  ADD PRIMARY KEY (room, version)

-- installed: whether the table of migrations is there
SELECT to_regclass('harvest.migration') IS NOT NULL

-- applied: what this database has had, where need be of the first line
SELECT COALESCE(to_jsonb(migration) ->> 'room', %s), version FROM harvest.migration

-- record: write down that a migration was applied
INSERT INTO harvest.migration (room, version, name) VALUES (%s, %s, %s)
