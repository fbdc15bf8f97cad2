-- The figures of whatever work a tour does, by their names; and of which tour they are: one of a version
-- before this has written the columns instead, and left the figures of another.
ALTER TABLE harvest.tour ADD COLUMN figures jsonb NOT NULL DEFAULT '{}', ADD COLUMN figures_of uuid;
