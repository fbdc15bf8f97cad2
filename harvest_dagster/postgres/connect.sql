-- patience: how long a statement of this session may wait, for a lock and in all; of NULL, as it was
SELECT set_config('lock_timeout', COALESCE(%(lock)s, current_setting('lock_timeout')), false)
     , set_config('statement_timeout', COALESCE(%(statement)s, current_setting('statement_timeout')), false)

-- by_index: run this session's statements by the primary key, also while statistics are of old
SELECT set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false)
