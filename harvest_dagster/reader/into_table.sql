-- upsert: put the fields of a JSON object into the columns of a row
INSERT INTO {table} ({columns})
SELECT {columns} FROM jsonb_populate_record(NULL::{table}, %s)
    ON CONFLICT ({key}) DO {then}
