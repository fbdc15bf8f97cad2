-- other_word: as what else a name is led here
SELECT word FROM harvest.lease WHERE name = %(name)s AND word <> %(word)s LIMIT 1

-- names: what is led as a word, each name with its shards in their order
SELECT name
     , count(*)                                                        AS shards
     , array_agg(CASE WHEN expires_at > clock_timestamp() THEN holder END
                 ORDER BY shard)                                       AS leaders
     , array_agg(epoch ORDER BY shard)                                 AS epochs
     , extract(epoch FROM clock_timestamp() - max(renewed_at))::float8 AS renewed_seconds
  FROM harvest.lease
 WHERE word = %(word)s
 GROUP BY name
 ORDER BY name
