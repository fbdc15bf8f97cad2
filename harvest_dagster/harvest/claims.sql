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

-- claim_sequenced: mark a batch, and give each of its records its clock; return the first one's
WITH {fence}, moved AS (
    UPDATE harvest.producer p
       SET last_clock = GREATEST({now}, p.last_clock + 1) + %(count)s - 1
      FROM fence
     WHERE p.name = %(name)s AND p.shard = %(shard)s AND p.producer = %(producer)s
    RETURNING p.last_clock - %(count)s + 1 AS first_clock
), claimed AS (
    INSERT INTO harvest.claim (name, shard, epoch, batch, ids, count, exactly_once,
                               producer, first_clock, placement)
    SELECT %(name)s, %(shard)s, %(epoch)s, %(batch)s, %(ids)s::int8multirange, %(count)s, false,
           %(producer)s, first_clock, %(placement)s
      FROM moved
    RETURNING first_clock
)
SELECT (SELECT count(*) FROM fence), (SELECT first_clock FROM claimed)

-- now: this moment as a clock of UUIDs
((extract(epoch FROM clock_timestamp()) * 10000000)::bigint + 122192928000000000) * 16

-- producer: as whom a shard publishes; anew where its clock was kept in another database
WITH {fence}, here AS (
    SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
                     left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), current_database())
        AS database
), kept AS (
    INSERT INTO harvest.producer AS p (name, shard, producer, last_clock, database)
    SELECT %(name)s, %(shard)s, %(new)s, 0, here.database FROM fence, here
    ON CONFLICT (name, shard) DO UPDATE
       SET producer = CASE WHEN p.database = EXCLUDED.database THEN p.producer
                           ELSE EXCLUDED.producer END
         , database = EXCLUDED.database
    RETURNING p.producer
)
SELECT (SELECT count(*) FROM fence), (SELECT producer FROM kept)

-- sequenced: the claims that are to be published as they are, in their order
SELECT batch, producer, first_clock, placement, ids, holes
  FROM harvest.claim
 WHERE name = %(name)s AND shard = %(shard)s AND producer IS NOT NULL
 ORDER BY batch

-- forget: remove claims of which no record is left
WITH {fence}, gone AS (
    DELETE FROM harvest.claim c
     USING fence
     WHERE c.name = %(name)s AND c.shard = %(shard)s AND c.batch = ANY(%(batches)s)
)
SELECT count(*) FROM fence

-- other_shards: by how many shards others have claimed that are to be published as they are
SELECT DISTINCT (placement ->> 'shards')::integer
  FROM harvest.claim
 WHERE name = %(name)s AND producer IS NOT NULL AND (placement ->> 'shards')::integer <> %(shards)s

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
     WHERE c.name = %(name)s AND c.shard = %(shard)s AND c.producer IS NULL
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
), old_events AS (
    SELECT id FROM harvest.event
     WHERE name = %(name)s AND at < now() - make_interval(days => %(days)s)
     ORDER BY at LIMIT (SELECT most FROM portion)
), old_requeued AS (
    SELECT id FROM harvest.parked
     WHERE name = %(name)s AND requeued_at < now() - make_interval(days => %(days)s)
     ORDER BY id LIMIT (SELECT most FROM portion)
), old_retained AS (
    SELECT id FROM harvest.retained
     WHERE name = %(name)s AND purged_at < now() - make_interval(secs => %(retention)s)
     ORDER BY purged_at LIMIT (SELECT most FROM portion)
), events AS (
    DELETE FROM harvest.event WHERE id IN (SELECT id FROM old_events)
), requeued AS (
    DELETE FROM harvest.parked WHERE name = %(name)s AND id IN (SELECT id FROM old_requeued)
), retained AS (
    DELETE FROM harvest.retained WHERE name = %(name)s AND id IN (SELECT id FROM old_retained)
)
SELECT most IN ( -- what was found, not removed, since another may remove the same just now
                (SELECT count(*) FROM old_events), (SELECT count(*) FROM old_requeued),
                (SELECT count(*) FROM old_retained))
  FROM portion
