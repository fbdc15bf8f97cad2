-- acquire: take the lease, whoever has it, as soon as no write of its leader holds it
WITH this (outbox) AS (
    SELECT to_regclass(%(outbox)s)::oid
), previous AS (
    SELECT epoch, holder, renewed_at
      FROM harvest.lease
     WHERE name = %(name)s AND shard = %(shard)s
       FOR UPDATE
), acquired AS (
    INSERT INTO harvest.lease AS lease
           (name, shard, epoch, leader_id, holder, acquired_at, renewed_at, expires_at, outbox,
            shards)
    SELECT %(name)s, %(shard)s, COALESCE((SELECT epoch FROM previous), 0) + 1
         , gen_random_uuid(), %(holder)s, clock_timestamp(), clock_timestamp()
         , clock_timestamp() + make_interval(secs => %(ttl)s), outbox, %(shards)s::integer
      FROM this
     WHERE NOT EXISTS (
           SELECT FROM harvest.lease AS rival
            WHERE rival.outbox = this.outbox AND rival.name <> %(name)s
              AND rival.expires_at > clock_timestamp())
       AND NOT EXISTS (
           SELECT FROM harvest.lease AS other
            WHERE other.name = %(name)s AND other.shards <> %(shards)s::integer
              AND (other.expires_at > clock_timestamp() OR EXISTS (
                   SELECT FROM harvest.claim
                    WHERE claim.name = other.name AND claim.shard = other.shard)))
        ON CONFLICT (name, shard) DO UPDATE
       SET epoch       = lease.epoch + 1
         , leader_id   = EXCLUDED.leader_id
         , holder      = EXCLUDED.holder
         , acquired_at = clock_timestamp()
         , renewed_at  = clock_timestamp()
         , expires_at  = clock_timestamp() + make_interval(secs => %(ttl)s)
         , resign      = false
         , outbox      = EXCLUDED.outbox
         , shards      = EXCLUDED.shards
    RETURNING name, shard, epoch, leader_id, holder
), noted AS (
    INSERT INTO harvest.event (at, name, shard, epoch, leader_id, kind, detail)
    SELECT clock_timestamp(), a.name, a.shard, a.epoch, a.leader_id, 'acquired'
         , jsonb_strip_nulls(jsonb_build_object(
               'holder', a.holder,
               'previous_epoch', p.epoch,
               'previous_holder', p.holder,
               'previous_age_seconds',
               round(extract(epoch FROM clock_timestamp() - p.renewed_at), 3)))
      FROM acquired a LEFT JOIN previous p ON true
)
SELECT name, shard, epoch, leader_id, holder FROM acquired

-- rival: who leads the same table under another name
SELECT name, holder
  FROM harvest.lease
 WHERE outbox = to_regclass(%(outbox)s)::oid AND name <> %(name)s AND expires_at > clock_timestamp()
 LIMIT 1

-- other_number: of how many shards one is, by another number, that is led or has claims to settle
SELECT shard, shards
  FROM harvest.lease AS other
 WHERE name = %(name)s AND shards <> %(shards)s::integer
   AND (expires_at > clock_timestamp() OR EXISTS (
        SELECT FROM harvest.claim WHERE claim.name = other.name AND claim.shard = other.shard))
 LIMIT 1

-- refresh: begin a new epoch under the same holder, also after tries whose answers were lost
WITH refreshed AS (
    UPDATE harvest.lease
       SET epoch     = epoch + 1
         , leader_id = %(next)s
     WHERE name = %(name)s AND shard = %(shard)s
       AND (epoch = %(epoch)s OR leader_id = ANY(%(tried)s))
    RETURNING name, shard, epoch, leader_id, holder
), noted AS (
    INSERT INTO harvest.event (at, name, shard, epoch, leader_id, kind, detail)
    SELECT clock_timestamp(), name, shard, epoch, leader_id, 'refreshed'
         , jsonb_build_object('holder', holder, 'reason', %(reason)s::text)
      FROM refreshed
)
SELECT name, shard, epoch, leader_id, holder FROM refreshed

-- renew: put the end of the lease off; it touches no key, so that it waits for no write
UPDATE harvest.lease
   SET renewed_at = clock_timestamp()
     , expires_at = clock_timestamp() + make_interval(secs => %(ttl)s)
 WHERE name = %(name)s AND shard = %(shard)s AND holder = %(holder)s
RETURNING epoch, leader_id, resign

-- release: end the lease now, if it is still this holder's
WITH released AS (
    UPDATE harvest.lease
       SET expires_at = LEAST(expires_at, clock_timestamp())
         , resign     = false
     WHERE name = %(name)s AND shard = %(shard)s AND holder = %(holder)s
    RETURNING name, shard, epoch, leader_id, holder
), noted AS (
    INSERT INTO harvest.event (at, name, shard, epoch, leader_id, kind, detail)
    SELECT clock_timestamp(), name, shard, epoch, leader_id, %(kind)s
         , jsonb_build_object('holder', holder) || %(detail)s
      FROM released
)
SELECT epoch FROM released

-- ask_to_resign: let the holder find, at its next renewal, that it is to go
UPDATE harvest.lease
   SET resign = true
 WHERE name = %(name)s AND shard = %(shard)s
RETURNING epoch

-- read: every lease, with its ages by the server's clock
SELECT name, shard, epoch, leader_id, holder, acquired_at, resign
     , extract(epoch FROM clock_timestamp() - acquired_at)::float8 AS acquired_seconds
     , extract(epoch FROM clock_timestamp() - renewed_at)::float8  AS renewed_seconds
     , extract(epoch FROM expires_at - clock_timestamp())::float8  AS expires_in_seconds
     , expires_at <= clock_timestamp()                             AS expired
  FROM harvest.lease
 WHERE %(name)s::text IS NULL OR name = %(name)s
 ORDER BY name, shard

-- patience: how long a statement of this session may wait, for a lock and in all
SELECT set_config('lock_timeout', %(lock)s, false), set_config('statement_timeout', %(all)s, false)

-- ready: whether the lease can be written here
SELECT FROM harvest.lease LIMIT 0
