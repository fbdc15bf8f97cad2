-- durable: do not let a crash forget a claim whose batch Kafka has, also where all else may be
SELECT set_config('synchronous_commit', 'on', false)
 WHERE current_setting('synchronous_commit') = 'off'

-- hasty: do not wait for the disk, where a crash may take back what is written
SELECT set_config('synchronous_commit', 'off', false)

-- claim: mark a batch, if the lease is still ours
WITH {fence}
INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count, exactly_once)
SELECT %(name)s, %(shard)s, %(epoch)s, %(batch)s, %(ids)s::int8multirange, %(count)s,
       %(exactly_once)s
  FROM fence

-- claim_rows: mark a batch, and each of its rows too, for a table that goharvest reaps as well
WITH {fence}, marked AS (
    UPDATE {table} o SET leader_id = %(leader_id)s
      FROM fence, unnest(%(ids)s::int8multirange) AS part
     WHERE o.id BETWEEN lower(part) AND upper(part) - 1
)
INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count, exactly_once)
SELECT %(name)s, %(shard)s, %(epoch)s, %(batch)s, %(ids)s::int8multirange, %(count)s,
       %(exactly_once)s
  FROM fence

-- purge: remove the records of published batches, along with their claims
WITH {fence}, claim AS (
    DELETE FROM harvest.claim c
     USING fence
     WHERE c.name = %(name)s AND c.shard = %(shard)s AND c.batch <= %(batch)s AND c.exactly_once
    RETURNING c.ids
), purged AS (
    DELETE FROM {table} o
     USING claim, unnest(claim.ids) AS part
     WHERE o.id BETWEEN lower(part) AND upper(part) - 1
    RETURNING {returned}
), kept AS ({kept})
SELECT (SELECT count(*) FROM fence), (SELECT count(*) FROM purged)

-- purge_records: remove single records that were published, and the claims that have no more of them
WITH {fence}, claim AS (
    DELETE FROM harvest.claim c
     USING fence
     WHERE c.name = %(name)s AND c.shard = %(shard)s AND c.batch = ANY(%(batches)s::bigint[])
), purged AS (
    DELETE FROM {table} o
     USING fence
     WHERE o.id = ANY(%(ids)s::bigint[])
    RETURNING {returned}
), kept AS ({kept})
SELECT (SELECT count(*) FROM fence), (SELECT count(*) FROM purged)

-- keep: the part of a purge that moves records instead of deleting them; of one id, the newest
INSERT INTO harvest.retained (name, id, create_time, kafka_topic, kafka_key, kafka_value,
                              kafka_header_keys, kafka_header_values, kafka_partition)
SELECT DISTINCT ON (id)
       %(name)s, id, create_time, kafka_topic, kafka_key, kafka_value, kafka_header_keys,
       kafka_header_values, kafka_partition
  FROM purged
 ORDER BY id, create_time DESC
ON CONFLICT (name, id) DO UPDATE
   SET create_time = EXCLUDED.create_time, kafka_topic = EXCLUDED.kafka_topic,
       kafka_key = EXCLUDED.kafka_key, kafka_value = EXCLUDED.kafka_value,
       kafka_header_keys = EXCLUDED.kafka_header_keys,
       kafka_header_values = EXCLUDED.kafka_header_values,
       kafka_partition = EXCLUDED.kafka_partition, purged_at = EXCLUDED.purged_at

-- last_batch: the number of the last batch that was ever claimed, of those still there
SELECT COALESCE(max(batch), 0) FROM harvest.claim WHERE name = %(name)s AND shard = %(shard)s

-- exactly_once: whether a leader whose delivery was that left claims, which Kafka knows more about
SELECT EXISTS (SELECT FROM harvest.claim
                WHERE name = %(name)s AND shard = %(shard)s AND exactly_once)

-- identity: which database this is
SELECT id || '/' || current_database() FROM harvest.identity

-- remark: give up the claims that were not published, so that their records are marked again
WITH {fence}, given_up AS (
    DELETE FROM harvest.claim c
     USING fence
     WHERE c.name = %(name)s AND c.shard = %(shard)s
    RETURNING c.epoch, c.count, c.marked_at
)
SELECT (SELECT count(*) FROM fence)
     , count(*)
     , COALESCE(sum(count), 0)::bigint
     , min(epoch)
     , COALESCE(extract(epoch FROM clock_timestamp() - min(marked_at)), 0)::float8
  FROM given_up

-- trim: forget what is older than it has to be kept, so much at a time; tell if there may be more
WITH portion AS (
    SELECT 10000 AS most
), events AS (
    DELETE FROM harvest.event
     WHERE id IN (SELECT id FROM harvest.event
                   WHERE name = %(name)s AND at < now() - make_interval(days => %(days)s)
                   ORDER BY at LIMIT (SELECT most FROM portion))
    RETURNING id
), requeued AS (
    DELETE FROM harvest.parked
     WHERE name = %(name)s
       AND id IN (SELECT id FROM harvest.parked
                   WHERE name = %(name)s AND requeued_at < now() - make_interval(days => %(days)s)
                   ORDER BY id LIMIT (SELECT most FROM portion))
    RETURNING id
), retained AS (
    DELETE FROM harvest.retained
     WHERE name = %(name)s
       AND id IN (SELECT id FROM harvest.retained
                   WHERE name = %(name)s
                     AND purged_at < now() - make_interval(secs => %(retention)s)
                   ORDER BY purged_at LIMIT (SELECT most FROM portion))
    RETURNING id
)
SELECT most IN ((SELECT count(*) FROM events), (SELECT count(*) FROM requeued),
                (SELECT count(*) FROM retained))
  FROM portion
