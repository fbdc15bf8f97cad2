-- As what a name is led: by the word of its room, which its commands begin with. A leader of a version
-- before this one writes no word, and leads outboxes alone.
ALTER TABLE harvest.lease ADD COLUMN word text NOT NULL DEFAULT 'outbox';
