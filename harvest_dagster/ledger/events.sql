-- noted: write down what `happened`, which the statement has made before
INSERT INTO harvest.event (at, name, shard, epoch, leader_id, kind, detail)
SELECT clock_timestamp(), name, shard, epoch, leader_id, kind, detail FROM happened

-- record: write down what happened, whoever leads
WITH happened AS (
    SELECT %(name)s::text AS name, %(shard)s::integer AS shard, %(epoch)s::bigint AS epoch
         , %(leader_id)s::uuid AS leader_id, %(kind)s::text AS kind, %(detail)s::jsonb AS detail
)
{noted}

-- read: what happened, newest first
SELECT id, at, name, shard, epoch, leader_id, kind, detail
  FROM harvest.event
 WHERE (%(name)s::text IS NULL OR name = %(name)s)
   AND (%(kinds)s::text[] = '{{}}' OR kind = ANY(%(kinds)s::text[]))
   AND (%(since)s::float8 IS NULL
        OR at >= clock_timestamp() - make_interval(secs => %(since)s::float8))
 ORDER BY at DESC, id DESC
 LIMIT %(limit)s
