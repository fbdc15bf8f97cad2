-- park: set a record aside, whole, with the reason
WITH {fence}, taken AS (
    DELETE FROM {table} o USING fence WHERE o.id = %(id)s RETURNING {returned}
), parked AS (
    INSERT INTO harvest.parked (name, shard, id, create_time, kafka_topic, kafka_key, kafka_value,
                                kafka_header_keys, kafka_header_values, kafka_partition, reason,
                                holds_key)
    SELECT %(name)s, %(shard)s, id, create_time, kafka_topic, kafka_key, kafka_value,
           kafka_header_keys, kafka_header_values, kafka_partition, %(reason)s, %(holds_key)s
      FROM taken
    ON CONFLICT (name, id) DO UPDATE  -- requeued before; or its ids were begun anew
       SET shard = EXCLUDED.shard, create_time = EXCLUDED.create_time,
           kafka_topic = EXCLUDED.kafka_topic, kafka_key = EXCLUDED.kafka_key,
           kafka_value = EXCLUDED.kafka_value, kafka_header_keys = EXCLUDED.kafka_header_keys,
           kafka_header_values = EXCLUDED.kafka_header_values,
           kafka_partition = EXCLUDED.kafka_partition, reason = EXCLUDED.reason,
           tries = parked.tries + 1, parked_at = now(), requeued_at = NULL,
           holds_key = EXCLUDED.holds_key
    RETURNING id
), holed AS (
    UPDATE harvest.claim c
       SET holes = c.holes + int8multirange(int8range(%(id)s, %(id)s, '[]')) + COALESCE(
               (SELECT range_agg(int8range(o.id, o.id, '[]'))
                  FROM taken, unnest(c.ids) AS part
                 CROSS JOIN LATERAL (SELECT id, kafka_topic, kafka_key FROM {table}
                                      WHERE id BETWEEN lower(part) AND upper(part) - 1) AS o
                 WHERE %(holds_key)s AND o.id > %(id)s
                   AND o.kafka_topic = %(topic)s AND o.kafka_key = %(key)s), '{{}}')
      FROM taken
     WHERE c.name = %(name)s AND c.shard = %(shard)s AND c.producer IS NOT NULL
       AND (c.ids @> %(id)s::bigint OR %(holds_key)s AND upper(c.ids) > %(id)s)
), happened AS (
    SELECT %(name)s::text AS name, %(shard)s::integer AS shard, %(epoch)s::bigint AS epoch
         , %(leader_id)s::uuid AS leader_id, 'parked' AS kind
         , jsonb_build_object('id', id, 'topic', %(topic)s::text, 'reason', %(reason)s::text) AS detail
      FROM parked
), noted AS ({noted})
SELECT count(*) FROM fence

-- lanes: the keys, of any shard, whose records wait behind a parked one, and the first that is parked
SELECT kafka_topic, kafka_key, min(id)
  FROM harvest.parked -- its shard may be by another number of shards, so all are read
 WHERE name = %(name)s AND holds_key AND requeued_at IS NULL
 GROUP BY kafka_topic, kafka_key

-- changes: a number that changes with each requeue, discard, or new part of the outbox, however late
SELECT (SELECT COALESCE(sum(id), 0)
          FROM harvest.event
         WHERE name = %(name)s AND kind IN ('requeued', 'discarded'))::bigint
     + (SELECT COALESCE(sum(inhrelid::bigint), 0)
          FROM pg_inherits
         WHERE inhparent = to_regclass({table}))::bigint
