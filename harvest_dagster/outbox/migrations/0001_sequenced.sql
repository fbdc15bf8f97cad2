-- What a claim of the delivery `sequenced` says, so that whoever publishes it says the same: as whose
-- records, from which clock on, and by which rule and how many partitions of each topic they are placed.
-- The holes are ids that are not to be published under it any more.
ALTER TABLE harvest.claim ADD COLUMN producer bytea, ADD COLUMN first_clock bigint,
    ADD COLUMN placement jsonb, ADD COLUMN holes int8multirange NOT NULL DEFAULT '{}';

-- As whom a harvest's shard publishes, the last clock that it has given, and of which database that is:
-- a copy of it, or one that was restored, has given clocks of which this one knows nothing.
CREATE TABLE harvest.producer (
    name       text    NOT NULL,
    shard      integer NOT NULL,
    producer   bytea   NOT NULL,
    last_clock bigint  NOT NULL,
    database   text    NOT NULL,
    PRIMARY KEY (name, shard)
);
