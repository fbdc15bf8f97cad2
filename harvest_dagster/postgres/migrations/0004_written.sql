-- What programs write in one go, such as Spark's jobs: by its key, so that it is written once.
CREATE TABLE harvest.written (
    key      text        NOT NULL PRIMARY KEY,
    write    uuid        NOT NULL,
    -- The newest batch of a stream; else how often it was written again.
    batch    bigint      NOT NULL DEFAULT 0,
    at       timestamptz NOT NULL DEFAULT now(),
    outbox   text        NOT NULL,
    messages bigint      NOT NULL,
    first_id bigint,
    last_id  bigint,
    -- How many rows went into which other table.
    tables   jsonb       NOT NULL DEFAULT '{}',
    -- Whether its key says nothing to anybody, so that it need not be kept for long.
    passing  boolean     NOT NULL
);
CREATE INDEX written_passing ON harvest.written (at) WHERE passing;

-- Tables that tasks copy into, to be moved by one transaction; and whose attempts did.
CREATE SCHEMA IF NOT EXISTS harvest_staging;
CREATE TABLE harvest.staged (
    name       text        NOT NULL PRIMARY KEY,
    write      uuid        NOT NULL,
    touched_at timestamptz NOT NULL DEFAULT now(),
    attempts   bigint[],
    rows       bigint
);
