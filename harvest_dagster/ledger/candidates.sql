-- stand: say that one stands, and what keeps it from leading; forget those that have been silent for an hour
WITH silent AS (
    DELETE FROM harvest.candidate
     WHERE name = %(name)s AND holder <> %(holder)s
       AND seen_at < clock_timestamp() - interval '1 hour'
)
INSERT INTO harvest.candidate AS candidate (name, holder, troubles)
VALUES (%(name)s, %(holder)s, %(troubles)s)
    ON CONFLICT (name, holder) DO UPDATE
   SET troubles = EXCLUDED.troubles
     , since    = CASE WHEN candidate.troubles = EXCLUDED.troubles THEN candidate.since
                       ELSE EXCLUDED.since END
     , seen_at  = EXCLUDED.seen_at

-- go: say that one stands no more
DELETE FROM harvest.candidate WHERE name = %(name)s AND holder = %(holder)s

-- read: who was seen lately, with ages by the server's clock
SELECT name, holder, troubles
     , extract(epoch FROM clock_timestamp() - since)::float8   AS since_seconds
     , extract(epoch FROM clock_timestamp() - seen_at)::float8 AS seen_seconds
  FROM harvest.candidate
 WHERE (%(name)s::text IS NULL OR name = %(name)s)
   AND seen_at > clock_timestamp() - make_interval(secs => %(lately)s)
 ORDER BY name, holder
