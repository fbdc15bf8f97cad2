-- sequence: the sequence of a table's ids, and its owner, if we may set it, and if it counts by ones up to the largest bigint and keeps no ids for single sessions
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname), c.relowner::regrole::text
  FROM pg_attribute a
  JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
  JOIN pg_depend p ON (p.classid, p.objid) = ('pg_attrdef'::regclass, d.oid)
                  AND p.refclassid = 'pg_class'::regclass
  JOIN pg_sequence s ON s.seqrelid = p.refobjid
  JOIN pg_class c ON c.oid = s.seqrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE a.attrelid = to_regclass(%s) AND a.attname = 'id' AND a.atttypid = 'bigint'::regtype
   AND (s.seqincrement, s.seqcache, s.seqcycle) = (1, 1, false)
   AND s.seqmax = 9223372036854775807
   AND pg_has_role(c.relowner, 'USAGE') AND has_sequence_privilege(c.oid, 'UPDATE')

-- jump: the first of so many ids, which are ours; all statements go in one message, so that nobody waits for our next one
SELECT pg_advisory_xact_lock(hashtextextended('harvest.ids ' || {name}, 0)); -- others who jump wait here, and do not give up at the sequence's lock
   SET LOCAL lock_timeout = '1ms';
 ALTER SEQUENCE {sequence} OWNER TO {owner}; -- it keeps its owner: the statement is there for its lock
SELECT setval({name}, nextval({name}) + {count} - 1) - {count} + 1

-- draw: so many ids, drawn one by one
SELECT string_agg(int8send(nextval(%s)), '') FROM generate_series(1, %s)
