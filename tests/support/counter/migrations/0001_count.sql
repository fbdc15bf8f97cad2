-- How far each count has come.
CREATE TABLE harvest.count (name text PRIMARY KEY, number bigint NOT NULL);
