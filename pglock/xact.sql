-- Statements that run in a caller's transaction. $1 is a key, $2 tells whether it
-- stands for two int4; or $1 is a name, for keys by hashtext.

--: try
-- A standby's advisory locks are its own: they keep nobody out.
SELECT pg_catalog.current_setting('transaction_isolation'), pg_catalog.pg_is_in_recovery(),
       CASE WHEN pg_catalog.pg_is_in_recovery() THEN false
       WHEN $2::bool THEN pg_catalog.pg_try_advisory_xact_lock(($1::int8 >> 32)::int4, (($1::int8 << 32) >> 32)::int4)
       ELSE pg_catalog.pg_try_advisory_xact_lock($1::int8) END;

--: wait
SELECT CASE WHEN $2::bool THEN pg_catalog.pg_advisory_xact_lock(($1::int8 >> 32)::int4, (($1::int8 << 32) >> 32)::int4)::text
       ELSE pg_catalog.pg_advisory_xact_lock($1::int8)::text END;

--: hashtext
SELECT pg_catalog.hashtext($1::text)::int8;

--: timeout
-- Sets lock_timeout for the transaction, and yields what it was.
WITH old AS MATERIALIZED (SELECT pg_catalog.current_setting('lock_timeout') AS v)
SELECT old.v, pg_catalog.set_config('lock_timeout', $1::text, true) FROM old;

--: idle
-- Has the server end this transaction if it is idle for longer than $1
-- milliseconds, or than it would anyway.
SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', least(nullif(s.setting::int8, 0), $1::int8)::text, true)
FROM pg_catalog.pg_settings s WHERE s.name = 'idle_in_transaction_session_timeout';
