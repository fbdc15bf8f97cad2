-- harvest.stash: for producers that speak SQL alone.
--
--   SELECT harvest.stash('orders', 'customer-7', '{"total": 12.5}');
--   SELECT harvest.stash(topic => 'orders', key => 'k', value => NULL::text,
--                        headers => '{"trace": "ab12"}', outbox => 'shop.outbox');
--
-- `headers` is an object, or an array of [key, value] where keys repeat. It writes into the
-- caller's transaction, with the caller's privileges, and tells the message's id.

CREATE FUNCTION harvest.header_keys(headers jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE jsonb_typeof(headers)
           WHEN 'object' THEN ARRAY(SELECT key FROM jsonb_each_text(headers)
                                    WITH ORDINALITY AS pair(key, value, place) ORDER BY place)
           ELSE ARRAY(SELECT pair ->> 0 FROM jsonb_array_elements(headers)
                      WITH ORDINALITY AS item(pair, place) ORDER BY place) END
$$;

CREATE FUNCTION harvest.header_values(headers jsonb) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE jsonb_typeof(headers)
           WHEN 'object' THEN ARRAY(SELECT value FROM jsonb_each_text(headers)
                                    WITH ORDINALITY AS pair(key, value, place) ORDER BY place)
           ELSE ARRAY(SELECT pair ->> 1 FROM jsonb_array_elements(headers)
                      WITH ORDINALITY AS item(pair, place) ORDER BY place) END
$$;

CREATE FUNCTION harvest.as_bytes(texts text[]) RETURNS bytea[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ARRAY(SELECT convert_to(item, 'UTF8') FROM unnest(texts)
                 WITH ORDINALITY AS found(item, place) ORDER BY place)
$$;

CREATE FUNCTION harvest.check_message(topic text, headers jsonb) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    IF topic IS NULL OR topic IN ('.', '..') OR topic !~ '^[A-Za-z0-9._-]{1,249}$' THEN
        RAISE EXCEPTION 'topic: % is not legal', quote_nullable(left(topic, 60))
            USING ERRCODE = 'check_violation',
                  HINT = 'Kafka takes 1 to 249 letters, digits, ''.'', ''_'' and ''-''.';
    END IF;
    IF headers IS NULL OR jsonb_typeof(headers) NOT IN ('object', 'array')
       OR jsonb_typeof(headers) = 'array' AND EXISTS (
           SELECT FROM jsonb_array_elements(headers) AS pair
            WHERE jsonb_typeof(pair) <> 'array' OR jsonb_array_length(pair) <> 2
               OR jsonb_typeof(pair -> 0) <> 'string') THEN
        RAISE EXCEPTION 'headers: % is neither an object nor an array of [key, value]',
            quote_nullable(left(headers::text, 60))
            USING ERRCODE = 'check_violation',
                  HINT = 'Write {"trace": "ab12"} or [["trace", "ab12"], ["trace", "cd34"]].';
    END IF;
END
$$;

CREATE FUNCTION harvest.stash_bytes(topic text, key bytea, value bytea, headers jsonb,
                                    outbox text, partition integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    place     regclass := to_regclass(outbox);
    key_type  regtype;
    head_type regtype;
    as_key    text;
    as_value  text;
    as_head   text;
    stashed   bigint;
BEGIN
    PERFORM harvest.check_message(topic, headers);
    IF place IS NULL THEN
        RAISE EXCEPTION 'there is no table % in the search path', quote_nullable(outbox)
            USING ERRCODE = 'undefined_table', HINT = 'Make it with `harvest outbox create`.';
    END IF;
    SELECT max(atttypid::bigint) FILTER (WHERE attname = 'kafka_key')::oid,
           max(atttypid::bigint) FILTER (WHERE attname = 'kafka_header_values')::oid,
           CASE WHEN bool_or(attname = 'kafka_value' AND atttypid = 'bytea'::regtype)
                THEN '$3' ELSE 'convert_from($3, ''UTF8'')' END
      INTO key_type, head_type, as_value
      FROM pg_attribute WHERE attrelid = place AND attnum > 0;
    as_key  := CASE WHEN key_type = 'bytea'::regtype THEN '$2'
                    ELSE 'convert_from($2, ''UTF8'')' END;
    as_head := CASE WHEN head_type = 'bytea[]'::regtype
                    THEN 'harvest.as_bytes($5)' ELSE '$5' END;
    EXECUTE format(
        'INSERT INTO %s (create_time, kafka_topic, kafka_key, kafka_value, kafka_header_keys,'
        ' kafka_header_values%s) VALUES (now(), $1, %s, %s, $4, %s%s) RETURNING id',
        place, CASE WHEN partition IS NOT NULL THEN ', kafka_partition' END,
        as_key, as_value, as_head, CASE WHEN partition IS NOT NULL THEN ', $6' END)
      INTO stashed
     USING topic, key, value, harvest.header_keys(headers), harvest.header_values(headers), partition;
    RETURN stashed;
END
$$;

CREATE FUNCTION harvest.stash(topic text, key text, value text, headers jsonb DEFAULT '{}',
                              outbox text DEFAULT 'outbox', partition integer DEFAULT NULL)
RETURNS bigint LANGUAGE sql AS $$
    SELECT harvest.stash_bytes(topic, convert_to(key, 'UTF8'), convert_to(value, 'UTF8'),
                               headers, outbox, partition)
$$;

CREATE FUNCTION harvest.stash(topic text, key text, value jsonb, headers jsonb DEFAULT '{}',
                              outbox text DEFAULT 'outbox', partition integer DEFAULT NULL)
RETURNS bigint LANGUAGE sql AS $$
    SELECT harvest.stash_bytes(topic, convert_to(key, 'UTF8'), convert_to(value::text, 'UTF8'),
                               headers, outbox, partition)
$$;

CREATE FUNCTION harvest.stash(topic text, key text, value bytea, headers jsonb DEFAULT '{}',
                              outbox text DEFAULT 'outbox', partition integer DEFAULT NULL)
RETURNS bigint LANGUAGE sql AS $$
    SELECT harvest.stash_bytes(topic, convert_to(key, 'UTF8'), value, headers, outbox, partition)
$$;
