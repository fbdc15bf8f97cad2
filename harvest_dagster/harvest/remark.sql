-- in_flight: how many records are still marked under an epoch, or under one before it
SELECT COALESCE(sum(count), 0)::bigint
  FROM harvest.claim
 WHERE name = %(name)s AND shard = %(shard)s AND epoch <= %(epoch)s
