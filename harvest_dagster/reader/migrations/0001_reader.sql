-- How far each reader has come, and who reads for it: a commit holds only under its fence.
CREATE TABLE harvest.reader_position (
    reader       text        NOT NULL,
    topic        text        NOT NULL,
    partition    integer     NOT NULL,
    topic_id     text        NOT NULL,
    next_offset  bigint      NOT NULL,
    leader_epoch integer,
    fence        bigint      NOT NULL DEFAULT 0,
    moved_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (reader, topic, partition)
) WITH (fillfactor = 50);

-- What each reader remembers of the producers of a partition; clocks have 64 bits without a sign.
CREATE TABLE harvest.reader_producer (
    reader    text          NOT NULL,
    topic     text          NOT NULL,
    partition integer       NOT NULL,
    producer  bytea         NOT NULL,
    last_ack  numeric(20)   NOT NULL,
    begin     bigint        NOT NULL DEFAULT -1,
    PRIMARY KEY (reader, topic, partition, producer)
) WITH (fillfactor = 70);
