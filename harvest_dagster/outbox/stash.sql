-- insert: one message
INSERT INTO {table} ({columns}) VALUES ({values})

-- returning: the same, returning the id
INSERT INTO {table} ({columns}) VALUES ({values}) RETURNING id

-- copy: many messages at once
COPY {table} ({columns}) FROM STDIN (FORMAT binary)

-- savepoint: where to go back to if one of many is refused half-way
SAVEPOINT harvest_stash

-- undo: go back there
ROLLBACK TO SAVEPOINT harvest_stash

-- keep: all got in
RELEASE SAVEPOINT harvest_stash

-- now: the transaction's time, in microseconds since 2000-01-01 UTC
SELECT (extract(epoch FROM now() - timestamptz '2000-01-01 00:00:00+00') * 1000000)::bigint
