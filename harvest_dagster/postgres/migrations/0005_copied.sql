-- How many rows all attempts have staged, those that do not count among them: where it is no more than
-- what counts, a large table need not be read to tell that nothing else is in it.
ALTER TABLE harvest.staged ADD COLUMN copied bigint NOT NULL DEFAULT 0;
