-- rival: who leads the same table under another name
SELECT name, holder
  FROM harvest.lease
 WHERE outbox = to_regclass(%(table)s)::oid AND name <> %(name)s AND expires_at > clock_timestamp()
 LIMIT 1

-- other_number: of how many shards one is, by another number, that is led or has claims to settle
SELECT shard, shards
  FROM harvest.lease AS other
 WHERE name = %(name)s AND shards <> %(shards)s::integer
   AND (expires_at > clock_timestamp() OR EXISTS (
        SELECT FROM harvest.claim WHERE claim.name = other.name AND claim.shard = other.shard))
 LIMIT 1

-- sign: write beside a lease of which table it is, and by which number of shards
UPDATE harvest.lease
   SET outbox = to_regclass(%(table)s)::oid, shards = %(shards)s
 WHERE name = %(name)s AND shard = %(shard)s AND holder = %(holder)s
