-- The figures of all tours before the one that the row is of, added up; of those of versions before this
-- none are known.
ALTER TABLE harvest.tour ADD COLUMN figures_before jsonb NOT NULL DEFAULT '{}';
