-- in_flight: what is marked, and not purged yet
SELECT count(*)                                                                   AS batches
     , COALESCE(sum(count), 0)::bigint                                            AS records
     , extract(epoch FROM clock_timestamp() - min(marked_at))::float8             AS oldest_seconds
  FROM harvest.claim
 WHERE name = %(name)s
