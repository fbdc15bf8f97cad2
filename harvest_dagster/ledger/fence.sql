-- fence: the row of a term's lease, held so that a successor waits; none when the term is over
fence AS (
    SELECT FROM harvest.lease
     WHERE name = %(name)s AND shard = %(shard)s AND epoch = %(epoch)s
       FOR KEY SHARE
)

-- note: write down what happened, if the term holds
WITH {fence}, happened AS (
    SELECT %(name)s::text AS name, %(shard)s::integer AS shard, %(epoch)s::bigint AS epoch
         , %(leader_id)s::uuid AS leader_id, %(kind)s::text AS kind, %(detail)s::jsonb AS detail
      FROM fence
)
{noted}
