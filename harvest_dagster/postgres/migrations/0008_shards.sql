-- By which number of shards a lease divides the keys: by two numbers a key would have two leaders.
ALTER TABLE harvest.lease ADD COLUMN shards integer;
