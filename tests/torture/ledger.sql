-- What the bench knows by itself, in the same database, so that it commits along with the messages.
CREATE SCHEMA torture;

-- How many messages were committed to a lane, a topic and key. Whoever stashes counts up first, and
-- so locks the lane until its commit: the numbers are the order of the commits, without a hole.
CREATE TABLE torture.lane (
    topic text,
    key   text,
    last  bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (topic, key)
) WITH (fillfactor = 50);

-- The transactions that committed, and how many messages each stashed.
CREATE TABLE torture.ledger (
    tx    bigint PRIMARY KEY,
    count integer NOT NULL
);

-- Writes of leaders whose epoch was over when they wrote.
CREATE TABLE torture.stale (
    at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    what  text        NOT NULL,
    epoch bigint      NOT NULL,
    held  bigint      NOT NULL
);

CREATE FUNCTION torture.look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO torture.stale (what, epoch, held)
    SELECT TG_TABLE_NAME, NEW.epoch, epoch
      FROM harvest.lease
     WHERE name = NEW.name AND shard = NEW.shard AND epoch <> NEW.epoch;
    RETURN NULL;
END $$;

-- What is deleted does not tell who deletes it, so the bench's candidates tell by their session.
CREATE FUNCTION torture.look_at_delete() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    ours constant bigint = NULLIF(current_setting('torture.epoch', true), '');
BEGIN
    IF ours IS NOT NULL AND EXISTS (SELECT FROM gone) THEN
        INSERT INTO torture.stale (what, epoch, held)
        SELECT TG_TABLE_NAME || ' deleted', ours, max(epoch) FROM harvest.lease
        HAVING max(epoch) <> ours;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER look AFTER INSERT ON harvest.claim FOR EACH ROW EXECUTE FUNCTION torture.look();
CREATE TRIGGER look_at_delete AFTER DELETE ON harvest.claim REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION torture.look_at_delete();
CREATE TRIGGER look_at_delete AFTER DELETE ON outbox REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION torture.look_at_delete();
CREATE TRIGGER look AFTER INSERT ON harvest.event FOR EACH ROW
    WHEN (NEW.kind IN ('tour_started', 'tour_ended', 'parked', 'held', 'released'))
    EXECUTE FUNCTION torture.look();
