-- Of a stream: which one it is, by the id that its checkpoint gives it, since batches of another one are
-- numbered alike; and how many messages all of its batches have stashed.
ALTER TABLE harvest.written ADD COLUMN stream text, ADD COLUMN total bigint NOT NULL DEFAULT 0;
