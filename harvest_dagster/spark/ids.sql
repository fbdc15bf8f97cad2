-- sequence: where a table has its ids from, if it may jump: it counts by ones, far, and for all sessions alike
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname)
  FROM pg_attribute a
  JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
  JOIN pg_depend p ON (p.classid, p.objid) = ('pg_attrdef'::regclass, d.oid)
                  AND p.refclassid = 'pg_class'::regclass
  JOIN pg_sequence s ON s.seqrelid = p.refobjid
  JOIN pg_class c ON c.oid = s.seqrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE a.attrelid = to_regclass(%s) AND a.attname = 'id' AND a.atttypid = 'bigint'::regtype
   AND (s.seqincrement, s.seqcache, s.seqcycle) = (1, 1, false)
   AND s.seqmax = 9223372036854775807 AND pg_has_role(c.relowner, 'USAGE')

-- queue: those who jump do so one after the other, and not in each other's way
SELECT pg_advisory_xact_lock(hashtextextended('harvest.ids ' || %s, 0))

-- hold: nobody else draws, if nobody just does; it changes nothing
SET LOCAL lock_timeout = '1ms';
ALTER SEQUENCE {sequence} INCREMENT BY 1

-- jump: the first of so many ids
SELECT setval(first.sequence, first.id + %(count)s - 1) - %(count)s + 1
  FROM (SELECT %(sequence)s::regclass AS sequence, nextval(%(sequence)s) AS id) AS first

-- draw: so many ids one by one
SELECT string_agg(int8send(nextval(%s)), '') FROM generate_series(1, %s)
