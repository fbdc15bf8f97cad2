-- For how many seconds leaders still wrote, of what only a leader may write, after another had
-- acquired the lease. Anybody may write down that a leader was fenced, and what it remarked is
-- written down behind it: neither counts.
SELECT COALESCE(sum(seconds), 0)::float8
  FROM (SELECT extract(epoch FROM max(written.at) - acquired.at) AS seconds
          FROM harvest.event acquired
          JOIN harvest.event written USING (name, shard)
         WHERE acquired.kind = 'acquired'
           AND written.kind IN ('tour_started', 'tour_ended', 'refreshed', 'revoked', 'parked',
                                'held', 'released')
           AND written.epoch < acquired.epoch
           AND written.at > acquired.at
         GROUP BY acquired.id) AS found
