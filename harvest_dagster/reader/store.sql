-- watched: let the server notice within half a minute that a client is gone, and free its locks
SELECT set_config('tcp_keepalives_idle', '10', false)
     , set_config('tcp_keepalives_interval', '5', false)
     , set_config('tcp_keepalives_count', '3', false)

-- lock: one at a time begins to read for a reader
SELECT pg_advisory_xact_lock(hashtextextended(%(reader)s, 727001))

-- known: how far a reader has come
SELECT topic, partition, topic_id, next_offset AS offset, fence,
       extract(epoch FROM clock_timestamp() - moved_at)::float8 AS still_seconds
  FROM harvest.reader_position
 WHERE reader = %(reader)s
 ORDER BY topic, partition

-- add: begin at an offset in each partition that is new
INSERT INTO harvest.reader_position (reader, topic, partition, topic_id, next_offset)
SELECT %(reader)s, * FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(ids)s::text[], %(offsets)s::bigint[])
    ON CONFLICT DO NOTHING

-- take: fence whoever reads these partitions, once what he commits just now is done
UPDATE harvest.reader_position AS position
   SET fence = fence + 1
  FROM unnest(%(topics)s::text[], %(partitions)s::int[]) AS mine (topic, partition)
 WHERE position.reader = %(reader)s
   AND position.topic = mine.topic AND position.partition = mine.partition
RETURNING position.topic, position.partition, position.topic_id, position.next_offset AS offset,
          position.fence, 0::float8 AS still_seconds

-- producers: what is known of the producers of some partitions
SELECT topic, partition, producer, last_ack, begin
  FROM harvest.reader_producer
  JOIN unnest(%(topics)s::text[], %(partitions)s::int[]) AS mine (topic, partition) USING (topic, partition)
 WHERE reader = %(reader)s

-- move: go on to offsets, and count how many partitions are still under their fences
WITH mine AS (
    SELECT *
      FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(fences)s::bigint[],
                  %(offsets)s::bigint[], %(epochs)s::int[])
        AS mine (topic, partition, fence, next_offset, leader_epoch)
), moved AS (
    UPDATE harvest.reader_position AS position
       SET next_offset  = mine.next_offset
         , leader_epoch = COALESCE(mine.leader_epoch, position.leader_epoch)
         , moved_at     = clock_timestamp()
      FROM mine
     WHERE position.reader = %(reader)s
       AND position.topic = mine.topic AND position.partition = mine.partition
       AND position.fence = mine.fence AND mine.next_offset IS NOT NULL
    RETURNING position.topic
), unmoved AS (
    SELECT position.topic
      FROM harvest.reader_position AS position
      JOIN mine USING (topic, partition, fence)
     WHERE position.reader = %(reader)s AND mine.next_offset IS NULL
)
SELECT (SELECT count(*) FROM moved) + (SELECT count(*) FROM unmoved)

-- keep: remember what has changed of producers
INSERT INTO harvest.reader_producer (reader, topic, partition, producer, last_ack, begin)
SELECT %(reader)s, *
  FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(producers)s::bytea[],
              %(acks)s::numeric[], %(begins)s::bigint[])
    ON CONFLICT (reader, topic, partition, producer) DO UPDATE
   SET last_ack = EXCLUDED.last_ack, begin = EXCLUDED.begin

-- forget: remember nothing more of producers
DELETE FROM harvest.reader_producer AS known
 USING unnest(%(topics)s::text[], %(partitions)s::int[], %(producers)s::bytea[])
    AS gone (topic, partition, producer)
 WHERE known.reader = %(reader)s AND known.topic = gone.topic
   AND known.partition = gone.partition AND known.producer = gone.producer

-- reset: go on elsewhere, under a new fence, so that nobody who reads now moves it back
INSERT INTO harvest.reader_position AS position (reader, topic, partition, topic_id, next_offset)
SELECT %(reader)s, * FROM unnest(%(topics)s::text[], %(partitions)s::int[], %(ids)s::text[], %(offsets)s::bigint[])
    ON CONFLICT (reader, topic, partition) DO UPDATE
   SET topic_id     = EXCLUDED.topic_id
     , next_offset  = EXCLUDED.next_offset
     , leader_epoch = NULL
     , fence        = position.fence + 1
     , moved_at     = clock_timestamp()

-- abandon: give up the spans that are open in some partitions; what counted stays counted
UPDATE harvest.reader_producer AS known
   SET begin = -1
  FROM unnest(%(topics)s::text[], %(partitions)s::int[]) AS reset (topic, partition)
 WHERE known.reader = %(reader)s AND known.begin <> -1
   AND known.topic = reset.topic AND known.partition = reset.partition
