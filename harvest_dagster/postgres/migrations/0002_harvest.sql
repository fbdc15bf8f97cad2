-- Who leads, what is marked, what happened, and what was set aside.

-- One row for an outbox and shard. The epoch only grows; because it stands in a unique key, taking
-- the lease over waits for every write of the old leader that holds FOR KEY SHARE, while a renewal
-- waits for none.
CREATE TABLE harvest.lease (
    name        text        NOT NULL,
    shard       integer     NOT NULL,
    epoch       bigint      NOT NULL,
    leader_id   uuid        NOT NULL,
    holder      text        NOT NULL,
    acquired_at timestamptz NOT NULL,
    renewed_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    resign      boolean     NOT NULL DEFAULT false,
    PRIMARY KEY (name, shard),
    UNIQUE (name, shard, epoch)
);

-- Which database this is: what Kafka knows of another database's batches says nothing of ours.
CREATE TABLE harvest.identity (id uuid PRIMARY KEY DEFAULT gen_random_uuid());
INSERT INTO harvest.identity DEFAULT VALUES;

-- The mark: one row for a batch of records, instead of a new version of each.
CREATE TABLE harvest.claim (
    name      text           NOT NULL,
    shard     integer        NOT NULL,
    epoch     bigint         NOT NULL,
    batch     bigint         NOT NULL,
    ids       int8multirange NOT NULL,
    count     integer        NOT NULL,
    marked_at timestamptz    NOT NULL DEFAULT now(),
    -- Whether the batch's number is committed in Kafka along with it: only then that number judges.
    exactly_once boolean     NOT NULL DEFAULT true,
    PRIMARY KEY (name, shard, batch)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0);

-- What happened: acquired, refreshed, revoked, fenced, tour_started, tour_ended, remarked,
-- ambiguous, parked, requeued, discarded, held, released.
CREATE TABLE harvest.event (
    id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL DEFAULT now(),
    name      text        NOT NULL,
    shard     integer     NOT NULL,
    epoch     bigint,
    leader_id uuid,
    kind      text        NOT NULL,
    detail    jsonb       NOT NULL DEFAULT '{}'
);
CREATE INDEX event_by_name ON harvest.event (name, at);

-- Records that Kafka refused for good, whole, until an operator requeues or discards them.
CREATE TABLE harvest.parked (
    name                text        NOT NULL,
    shard               integer     NOT NULL,
    id                  bigint      NOT NULL,
    create_time         timestamptz,
    kafka_topic         text        NOT NULL,
    kafka_key           bytea,
    kafka_value         bytea,
    kafka_header_keys   text[]      NOT NULL,
    kafka_header_values bytea[]     NOT NULL,
    kafka_partition     integer,
    reason              text        NOT NULL,
    tries               integer     NOT NULL DEFAULT 1,
    parked_at           timestamptz NOT NULL DEFAULT now(),
    requeued_at         timestamptz,
    holds_key           boolean     NOT NULL,
    PRIMARY KEY (name, id)
);

-- Records that were published, where they are to be kept for a while.
CREATE TABLE harvest.retained (
    name                text        NOT NULL,
    id                  bigint      NOT NULL,
    create_time         timestamptz,
    kafka_topic         text        NOT NULL,
    kafka_key           bytea,
    kafka_value         bytea,
    kafka_header_keys   text[]      NOT NULL,
    kafka_header_values bytea[]     NOT NULL,
    kafka_partition     integer,
    purged_at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name, id)
);
CREATE INDEX retained_by_time ON harvest.retained (name, purged_at);
