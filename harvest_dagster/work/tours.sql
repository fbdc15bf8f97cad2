-- begin: write down a tour under the epoch that was taken for it, in the place of the last one
INSERT INTO harvest.tour (name, shard, id, epoch, run, started_at, seen_at)
SELECT name, shard, %(id)s, epoch, %(run)s, clock_timestamp(), clock_timestamp()
  FROM harvest.lease
 WHERE name = %(name)s AND shard = %(shard)s AND epoch = %(epoch)s
    ON CONFLICT (name, shard) DO UPDATE
   SET id         = EXCLUDED.id
     , epoch      = EXCLUDED.epoch
     , run        = EXCLUDED.run
     , started_at = EXCLUDED.started_at
     , seen_at    = EXCLUDED.seen_at
     , ended_at   = NULL
     , drain      = false
     , before     = harvest.tour.before + harvest.tour.published
     , published  = 0
     , figures_before = (
           SELECT COALESCE(jsonb_object_agg(figure, total), '{}')
             FROM (SELECT figure, sum(count::bigint) AS total
                     FROM (SELECT * FROM jsonb_each_text(harvest.tour.figures_before)
                            UNION ALL
                           SELECT * FROM jsonb_each_text(harvest.tour.figures)
                            WHERE harvest.tour.figures_of = harvest.tour.id) AS each (figure, count)
                    GROUP BY figure) AS summed)
     , figures    = '{}'
     , figures_of = EXCLUDED.id
     , held       = '{}'

-- tell: say that a tour is alive and how far it has come; hear of its lease, and if it is to end
WITH told AS (
    UPDATE harvest.tour
       SET seen_at    = clock_timestamp()
         , epoch      = %(epoch)s
         , published  = %(done)s
         , figures    = %(figures)s
         , figures_of = %(id)s
         , held       = %(held)s
         , ended_at   = CASE WHEN %(ended)s THEN clock_timestamp() END
     WHERE name = %(name)s AND shard = %(shard)s AND id = %(id)s
    RETURNING drain
)
SELECT told.drain
     , lease.epoch
     , lease.holder
     , extract(epoch FROM lease.expires_at - clock_timestamp())::float8 AS expires_in_seconds
  FROM told
  JOIN harvest.lease lease ON lease.name = %(name)s AND lease.shard = %(shard)s

-- ask_to_drain: let a tour that runs find, when it tells next, that it is to end
UPDATE harvest.tour
   SET drain = true
 WHERE name = %(name)s AND shard = %(shard)s AND ended_at IS NULL

-- read: the tours of what is led, with their ages by the server's clock
SELECT name, shard, id, epoch, run, published AS done, before AS done_before, held, drain
     , CASE WHEN figures_of = id THEN figures
            ELSE jsonb_build_object('marked', marked, 'published', published, 'purged', purged,
                                    'remarked', remarked, 'parked', parked, 'in_flight', in_flight)
       END                                                        AS figures
     , figures_before
     , extract(epoch FROM clock_timestamp() - started_at)::float8 AS started_seconds
     , extract(epoch FROM clock_timestamp() - seen_at)::float8    AS seen_seconds
     , ended_at IS NOT NULL                                       AS ended
  FROM harvest.tour
 WHERE %(name)s::text IS NULL OR name = %(name)s
 ORDER BY name, shard
