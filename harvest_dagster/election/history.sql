-- record: write down what happened
INSERT INTO harvest.event (at, name, shard, epoch, leader_id, kind, detail)
VALUES (clock_timestamp(), %(name)s, %(shard)s, %(epoch)s, %(leader_id)s, %(kind)s, %(detail)s)

-- read: what happened, newest first
SELECT id, at, name, shard, epoch, leader_id, kind, detail
  FROM harvest.event
 WHERE (%(name)s::text IS NULL OR name = %(name)s)
   AND (%(kinds)s::text[] = '{}' OR kind = ANY(%(kinds)s::text[]))
   AND (%(since)s::float8 IS NULL
        OR at >= clock_timestamp() - make_interval(secs => %(since)s::float8))
 ORDER BY at DESC, id DESC
 LIMIT %(limit)s
