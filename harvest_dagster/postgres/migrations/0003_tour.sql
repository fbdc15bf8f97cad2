-- The tour that harvests a shard in a process of its own, as it said last: so that whoever leads
-- knows that it is alive, how far it has come, and when it has ended, and can ask it to end.
CREATE TABLE harvest.tour (
    name       text        NOT NULL,
    shard      integer     NOT NULL,
    id         uuid        NOT NULL,
    epoch      bigint      NOT NULL,
    run        text        NOT NULL,
    started_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    ended_at   timestamptz,
    drain      boolean     NOT NULL DEFAULT false,
    marked     bigint      NOT NULL DEFAULT 0,
    published  bigint      NOT NULL DEFAULT 0,
    purged     bigint      NOT NULL DEFAULT 0,
    remarked   bigint      NOT NULL DEFAULT 0,
    parked     bigint      NOT NULL DEFAULT 0,
    in_flight  bigint      NOT NULL DEFAULT 0,
    -- The topics that can't be published to, each with the reason.
    held       jsonb       NOT NULL DEFAULT '{}',
    -- What all the tours before it have published.
    before     bigint      NOT NULL DEFAULT 0,
    PRIMARY KEY (name, shard)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
