-- The statements of a session that holds advisory locks, each prepared once. The
-- line above a statement names it; @ stands for the schema's name.
--
-- $1 are keys, $2 tells of each whether it stands for two int4 (high, low).

--: try
-- Tries for keys, exclusively.
SELECT i.k, i.two, CASE WHEN i.two THEN pg_catalog.pg_try_advisory_lock((i.k >> 32)::int4, ((i.k << 32) >> 32)::int4)
                   ELSE pg_catalog.pg_try_advisory_lock(i.k) END, 0::int8, 0::int8
FROM ROWS FROM (pg_catalog.unnest($1::int8[]), pg_catalog.unnest($2::bool[])) i (k, two);

--: tryOne
-- What try does, for the usual case: one key, a bigint.
SELECT pg_catalog.pg_try_advisory_lock($1);

--: tryFenced
-- Tries for keys, exclusively; what is granted draws a token, which is its fence.
-- The row is stepped by two or more, so that the readers between two writers have
-- a fence between theirs. It holds also if the sequence has lost some numbers.
WITH t AS MATERIALIZED (
    SELECT i.k, i.two, CASE WHEN i.two THEN pg_catalog.pg_try_advisory_lock((i.k >> 32)::int4, ((i.k << 32) >> 32)::int4)
                       ELSE pg_catalog.pg_try_advisory_lock(i.k) END AS ok
    FROM ROWS FROM (pg_catalog.unnest($1::int8[]), pg_catalog.unnest($2::bool[])) i (k, two)
), f AS (
    INSERT INTO @.fences AS f (k, two, v)
    SELECT t.k, t.two, pg_catalog.nextval('@.tokens'::regclass) FROM t WHERE t.ok
    ON CONFLICT (k, two) DO UPDATE SET v = greatest(excluded.v, f.v + 2)
    RETURNING f.k, f.two, f.v
)
SELECT t.k, t.two, t.ok, coalesce(f.v, 0), coalesce(f.v, 0) FROM t LEFT JOIN f ON f.k = t.k AND f.two = t.two;

--: tryFencedOne
-- What tryFenced does, for one key, a bigint, whose row is there.
WITH t AS MATERIALIZED (
    SELECT pg_catalog.pg_try_advisory_lock($1) AS ok
), f AS (
    UPDATE @.fences f SET v = greatest(pg_catalog.nextval('@.tokens'::regclass), f.v + 2)
    FROM t WHERE t.ok AND f.k = $1 AND f.two = false RETURNING f.v
)
SELECT t.ok, f.v FROM t LEFT JOIN f ON true;

--: firstFence
-- Makes the row of a key, a bigint, that is held.
INSERT INTO @.fences AS f (k, two, v) VALUES ($1, false, pg_catalog.nextval('@.tokens'::regclass))
ON CONFLICT (k, two) DO UPDATE SET v = greatest(excluded.v, f.v + 2)
RETURNING f.v;

--: tryShared
SELECT i.k, i.two, CASE WHEN i.two THEN pg_catalog.pg_try_advisory_lock_shared((i.k >> 32)::int4, ((i.k << 32) >> 32)::int4)
                   ELSE pg_catalog.pg_try_advisory_lock_shared(i.k) END, 0::int8, 0::int8
FROM ROWS FROM (pg_catalog.unnest($1::int8[]), pg_catalog.unnest($2::bool[])) i (k, two);

--: tokens
-- Readers who hold keys already draw tokens; their fence lies above every earlier
-- writer's and below every later one's.
SELECT i.k, i.two, true, pg_catalog.nextval('@.tokens'::regclass), coalesce((
    SELECT f.v FROM @.fences f WHERE f.k = i.k AND f.two = i.two), 0) + 1
FROM ROWS FROM (pg_catalog.unnest($1::int8[]), pg_catalog.unnest($2::bool[])) i (k, two);

--: unlock
-- Gives keys back, and then tells those who wait for them, if somebody waits for
-- anything: see the statement see. $3 tells which are shared, $4 is the channel, $5
-- the flag.
SELECT i.k, i.two, CASE
    WHEN i.two AND i.shared THEN pg_catalog.pg_advisory_unlock_shared((i.k >> 32)::int4, ((i.k << 32) >> 32)::int4)
    WHEN i.two THEN pg_catalog.pg_advisory_unlock((i.k >> 32)::int4, ((i.k << 32) >> 32)::int4)
    WHEN i.shared THEN pg_catalog.pg_advisory_unlock_shared(i.k)
    ELSE pg_catalog.pg_advisory_unlock(i.k) END, 0::int8, 0::int8,
    CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock($5) THEN
        pg_catalog.pg_notify($4, CASE WHEN i.two THEN 'p' ELSE 'k' END || i.k::text)::text END
FROM ROWS FROM (pg_catalog.unnest($1::int8[]), pg_catalog.unnest($2::bool[]), pg_catalog.unnest($3::bool[])) i (k, two, shared);

--: unlockOne
-- What unlock does, for one key, a bigint, that is held exclusively. $2 is the
-- channel, $3 what is told, $4 the flag.
SELECT pg_catalog.pg_advisory_unlock($1), CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock($4) THEN pg_catalog.pg_notify($2, $3)::text END;

--: see
-- Takes the flag, a key that stands for none: each session on whose behalf somebody
-- waits has it, shared. Whoever gives a lock back tries for it exclusively, in the
-- same statement and after that, and is refused if there is one. So either the
-- waiter is told, or its next try, which comes after this, finds the lock free. It
-- is the only lock that is ever waited for: until such a statement ends.
SELECT pg_catalog.pg_advisory_lock_shared($1);

--: unsee
SELECT pg_catalog.pg_advisory_unlock_shared($1);

--: hashtext
SELECT pg_catalog.hashtext($1)::int8;

--: ping
SELECT 1;

--: bury
-- Ends a session of ours whose connection has failed, if it lives on.
SELECT pg_catalog.pg_terminate_backend(pid, 2000) FROM pg_catalog.pg_stat_activity
WHERE pid = $1 AND backend_start = $2::timestamptz AND pid <> pg_catalog.pg_backend_pid();

--: birth
SELECT backend_start::text FROM pg_catalog.pg_stat_activity WHERE pid = pg_catalog.pg_backend_pid();

--: tell
SELECT pg_catalog.pg_notify($1, $2);

--: may
-- Who $1 is, and whether that role may take away ($2) or see what this session has.
SELECT coalesce(a.usename, 'of a session that is gone'), coalesce(
    pg_catalog.pg_has_role(a.usesysid, me.oid, 'USAGE')
    OR NOT me.rolsuper AND pg_catalog.pg_has_role(a.usesysid, 'pg_signal_backend', 'USAGE')
    OR NOT $2::bool AND pg_catalog.pg_has_role(a.usesysid, 'pg_read_all_stats', 'USAGE'), false)
FROM pg_catalog.pg_roles me LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = $1::int
WHERE me.rolname = current_user;

--: holders
-- Who holds advisory locks in this database, but for the flag $1.
SELECT l.pid, l.classid::int8 << 32 | l.objid::int8, l.objsubid = 2, pg_catalog.bool_and(l.mode = 'ShareLock'),
       coalesce(a.application_name, ''), coalesce(a.usename::text, ''), coalesce(a.client_addr::text, '')
FROM pg_catalog.pg_locks l
JOIN pg_catalog.pg_database d ON d.oid = l.database AND d.datname = pg_catalog.current_database()
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND NOT (l.objsubid = 1 AND l.classid::int8 << 32 | l.objid::int8 = $1::text::int8)
GROUP BY l.pid, l.classid, l.objid, l.objsubid, a.application_name, a.usename, a.client_addr;
