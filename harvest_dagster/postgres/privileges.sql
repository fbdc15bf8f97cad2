-- role: whether a role exists
SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)

-- has_table: whether a role has a privilege on a table
SELECT has_table_privilege(%s, %s, %s)

-- has_column: whether a role has a privilege on a column
SELECT has_column_privilege(%s, %s, %s, %s)

-- has_sequence: whether a role has a privilege on a sequence
SELECT has_sequence_privilege(%s, %s, %s)

-- has_schema: whether a role has a privilege on a schema
SELECT has_schema_privilege(%s, to_regnamespace(%s), %s)
