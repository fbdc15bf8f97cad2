-- Who stands for election, and what keeps it from leading: since when it says so, and when it said so
-- last. A candidate of a version before this writes nothing here.
CREATE TABLE harvest.candidate (
    name     text        NOT NULL,
    holder   text        NOT NULL,
    troubles text[]      NOT NULL DEFAULT '{}',
    since    timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (name, holder)
);
