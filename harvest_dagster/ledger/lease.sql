-- acquire: take the lease when no write of its leader holds it: from `whoever` has it, or when it expired
WITH previous AS (
    SELECT epoch, holder, renewed_at
      FROM harvest.lease
     WHERE name = %(name)s AND shard = %(shard)s AND word = %(word)s
       AND (%(whoever)s OR expires_at <= clock_timestamp())
       FOR UPDATE
), acquired AS (
    INSERT INTO harvest.lease AS lease
           (name, word, shard, epoch, leader_id, holder, acquired_at, renewed_at, expires_at)
    SELECT %(name)s, %(word)s, %(shard)s, COALESCE((SELECT epoch FROM previous), 0) + 1
         , gen_random_uuid(), %(holder)s, clock_timestamp(), clock_timestamp()
         , clock_timestamp() + make_interval(secs => %(ttl)s)
     WHERE NOT EXISTS ( -- whoever conflicts with a row locks it, and its leader would wait
           SELECT FROM harvest.lease
            WHERE name = %(name)s
              AND (word <> %(word)s -- of a name that is led as another word nothing is touched
                   OR NOT %(whoever)s AND shard = %(shard)s AND expires_at > clock_timestamp()))
        ON CONFLICT (name, shard) DO UPDATE
       SET epoch       = lease.epoch + 1
         , leader_id   = EXCLUDED.leader_id
         , holder      = EXCLUDED.holder
         , acquired_at = clock_timestamp()
         , renewed_at  = clock_timestamp()
         , expires_at  = clock_timestamp() + make_interval(secs => %(ttl)s)
         , resign      = false
     WHERE lease.word = EXCLUDED.word AND (%(whoever)s OR lease.expires_at <= clock_timestamp())
    RETURNING name, shard, epoch, leader_id, holder
), happened AS (
    SELECT a.name, a.shard, a.epoch, a.leader_id, 'acquired' AS kind
         , jsonb_strip_nulls(jsonb_build_object(
               'holder', a.holder,
               'previous_epoch', p.epoch,
               'previous_holder', p.holder,
               'previous_age_seconds',
               round(extract(epoch FROM clock_timestamp() - p.renewed_at), 3),
               'reason',
               CASE WHEN p.epoch IS NULL THEN 'nobody has led before'
                    WHEN EXISTS (SELECT FROM harvest.event
                                  WHERE name = a.name AND at >= p.renewed_at
                                    AND shard = a.shard AND epoch = p.epoch AND kind = 'revoked')
                    THEN p.holder || ' handed over'
                    ELSE p.holder || ' was not heard of for ' ||
                         round(extract(epoch FROM clock_timestamp() - p.renewed_at), 1) || ' s'
               END)) AS detail
      FROM acquired a LEFT JOIN previous p ON true
), noted AS ({noted})
SELECT name, shard, epoch, leader_id, holder FROM acquired

-- refresh: begin a new epoch under the same holder, also after tries whose answers were lost
WITH refreshed AS (
    UPDATE harvest.lease
       SET epoch     = epoch + 1
         , leader_id = %(next)s
     WHERE name = %(name)s AND shard = %(shard)s
       AND (epoch = %(epoch)s OR leader_id = ANY(%(tried)s))
    RETURNING name, shard, epoch, leader_id, holder
), happened AS (
    SELECT name, shard, epoch, leader_id, 'refreshed' AS kind
         , jsonb_build_object('holder', holder, 'reason', %(reason)s::text) AS detail
      FROM refreshed
), noted AS ({noted})
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
), happened AS (
    SELECT name, shard, epoch, leader_id, %(kind)s AS kind
         , jsonb_build_object('holder', holder) || %(detail)s AS detail
      FROM released
), noted AS ({noted})
SELECT epoch FROM released

-- ask_to_resign: let the holder find, at its next renewal, that it is to go
UPDATE harvest.lease
   SET resign = true
 WHERE name = %(name)s AND shard = %(shard)s
RETURNING epoch

-- read: every lease, with its ages by the server's clock
SELECT name, word, shard, epoch, leader_id, holder, acquired_at, resign
     , extract(epoch FROM clock_timestamp() - acquired_at)::float8 AS acquired_seconds
     , extract(epoch FROM clock_timestamp() - renewed_at)::float8  AS renewed_seconds
     , extract(epoch FROM expires_at - clock_timestamp())::float8  AS expires_in_seconds
     , expires_at <= clock_timestamp()                             AS expired
  FROM harvest.lease
 WHERE %(name)s::text IS NULL OR name = %(name)s
 ORDER BY name, shard

-- ready: whether the lease can be written here
SELECT word FROM harvest.lease LIMIT 0
