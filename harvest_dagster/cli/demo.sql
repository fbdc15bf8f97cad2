-- table: the shop's own data
CREATE TABLE IF NOT EXISTS demo_order (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer text    NOT NULL,
    total    numeric NOT NULL
)

-- order: one order
INSERT INTO demo_order (customer, total) VALUES (%s, %s) RETURNING id

-- newest: the last messages of the outbox
SELECT id, kafka_topic, convert_from(kafka_key, 'UTF8'), convert_from(kafka_value, 'UTF8'),
       kafka_header_keys
  FROM {table}
 ORDER BY id DESC
 LIMIT %s

-- waiting: how many messages wait, of the first few
SELECT count(*) FROM (SELECT FROM {table} LIMIT 10) AS waiting
