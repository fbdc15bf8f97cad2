-- list: records that are set aside; `whole` has their values, and those that were requeued too
SELECT id, shard, create_time, kafka_topic AS topic, kafka_key AS key
     , CASE WHEN %(whole)s THEN kafka_value END AS value, octet_length(kafka_value) AS value_bytes
     , kafka_header_keys AS header_keys, kafka_header_values AS header_values
     , kafka_partition AS partition, reason, tries, parked_at, requeued_at, holds_key
  FROM harvest.parked
 WHERE name = %(name)s
   AND (%(whole)s OR requeued_at IS NULL)
   AND (%(ids)s::bigint[] IS NULL OR id = ANY(%(ids)s))
   AND (%(topic)s::text IS NULL OR kafka_topic = %(topic)s)
   AND (%(key)s::bytea IS NULL OR kafka_key = %(key)s)
 ORDER BY id
 LIMIT %(limit)s

-- requeue: put records back into the outbox under their old ids; what was set aside is kept
WITH requeued AS (
    UPDATE harvest.parked
       SET requeued_at = clock_timestamp()
     WHERE name = %(name)s AND id = ANY(%(ids)s) AND requeued_at IS NULL
    RETURNING *
), stashed AS (
    INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE
    SELECT {values} FROM requeued ORDER BY id
)
SELECT id FROM requeued

-- discard: forget records for good
DELETE FROM harvest.parked
 WHERE name = %(name)s AND id = ANY(%(ids)s) AND requeued_at IS NULL
RETURNING id

-- reasons: how many records are set aside, by reason, up to a bound
SELECT reason, count(*) AS records
  FROM (SELECT reason FROM harvest.parked
         WHERE name = %(name)s AND requeued_at IS NULL LIMIT %(most)s) AS counted
 GROUP BY reason
 ORDER BY records DESC, reason

-- held_keys: how many keys have records that wait behind one set aside, of as many as are counted
SELECT count(DISTINCT (kafka_topic, kafka_key))
  FROM (SELECT kafka_topic, kafka_key FROM harvest.parked
         WHERE name = %(name)s AND holds_key AND requeued_at IS NULL LIMIT %(most)s) AS counted
