-- waiting: all that waits in an outbox
SELECT * FROM {table} ORDER BY id

-- empty: whether nothing waits
SELECT NOT EXISTS (SELECT FROM {table})
