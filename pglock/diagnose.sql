-- What Diagnose asks.

--: server
-- One row of text, whatever the role may see.
SELECT pg_catalog.current_setting('server_version'),
       pg_catalog.date_trunc('second', pg_catalog.clock_timestamp() - pg_catalog.pg_postmaster_start_time())::text,
       pg_catalog.current_setting('max_connections')::int - pg_catalog.current_setting('superuser_reserved_connections')::int,
       (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend')::int,
       pg_catalog.current_setting('fsync'),
       pg_catalog.current_setting('synchronous_commit'),
       (SELECT count(*) FROM pg_catalog.pg_stat_replication)::int,
       pg_catalog.current_setting('synchronous_standby_names'),
       pg_catalog.current_setting('autovacuum'),
       (SELECT reset_val FROM pg_catalog.pg_settings WHERE name = 'idle_session_timeout'),
       coalesce((SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()), false),
       current_user::text,
       (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user);

--: rights
-- Of the rights in $1 (kinds), $2 (objects) and $3 (privileges) those that the role
-- lacks.
SELECT i.privilege || ' on ' || i.object
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::text[])) i (kind, object, privilege)
WHERE NOT CASE i.kind WHEN 'schema' THEN pg_catalog.has_schema_privilege(i.object, i.privilege)
               WHEN 'sequence' THEN pg_catalog.has_sequence_privilege(i.object, i.privilege)
               WHEN 'function' THEN COALESCE(pg_catalog.has_function_privilege(pg_catalog.to_regproc(i.object)::oid, i.privilege), false)
               ELSE pg_catalog.has_table_privilege(i.object, i.privilege) END;
