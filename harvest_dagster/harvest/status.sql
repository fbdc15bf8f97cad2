-- in_flight: what is marked, and not purged yet
SELECT count(*)                                                                   AS batches
     , COALESCE(sum(count), 0)::bigint                                            AS records
     , extract(epoch FROM clock_timestamp() - min(marked_at))::float8             AS oldest_seconds
  FROM harvest.claim
 WHERE name = %(name)s

-- held: the topics that can't be published to, as their leaders have written down since they began
WITH began AS (
    SELECT shard, max(id) AS id
      FROM harvest.event
     WHERE name = %(name)s AND kind IN ('acquired', 'tour_started')
     GROUP BY shard
), told AS (
    SELECT DISTINCT ON (event.shard, topic) topic, kind, detail ->> 'reason' AS reason
      FROM harvest.event
      LEFT JOIN began ON began.shard = event.shard
     CROSS JOIN LATERAL (
           SELECT detail ->> 'topic'
            UNION ALL
           SELECT jsonb_array_elements_text(COALESCE(detail -> 'topics', '[]'))) AS one(topic)
     WHERE name = %(name)s AND kind IN ('held', 'released')
       AND event.id > COALESCE(began.id, 0) AND topic IS NOT NULL
     ORDER BY event.shard, topic, event.id DESC
)
SELECT topic, COALESCE(min(reason), '') FROM told WHERE kind = 'held' GROUP BY topic ORDER BY topic
