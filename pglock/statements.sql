-- Every statement that runs after the store was opened. The line above a
-- statement names it; @ stands for the schema's name.

--: read
-- The state of names. What is judged by the moment that comes with it was so
-- when the statement began, and that was after the caller asked.
SELECT w.name, m.mark, (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint),
       n.version, n.last, n.readers, n.took_over,
       c.seq, c.state, c.id, c.token, c.fence, c.units, c.capacity, c.since, c.until, c.ttl, c.patience, c.keep,
       c.heard, c.delay, c.died, c.took_over, c.origin, c.note
FROM @.meta m CROSS JOIN pg_catalog.unnest($1::text[]) w (name)
LEFT JOIN @.names n ON n.name = w.name
LEFT JOIN @.claims c ON c.name = w.name
ORDER BY w.name, c.seq;

--: write
-- Writes steps, each on one name: all of a step or nothing. $1 are the names,
-- $2 the rows to be removed, $3 the rows to be written, $4 what is to be told on
-- the channel $5, $6 the events. A step is written if the name's version is still
-- the one that was read (0: it has no row, and the mark is the same), and no row
-- to be removed is guarded. $7: write all steps or none.
--
-- It yields the names written (seq 0), and the guarded rows.
WITH step AS MATERIALIZED (
    SELECT * FROM pg_catalog.json_to_recordset($1::json) AS
        s (name text, version bigint, last bigint, readers bigint, took_over boolean, mark bigint)
), now AS MATERIALIZED (
    SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS t
), drops AS MATERIALIZED (
    SELECT * FROM pg_catalog.json_to_recordset($2::json) AS d (name text, seq bigint)
), old AS MATERIALIZED (
    -- In order, so that two writers never wait for each other.
    SELECT n.name FROM @.names n JOIN step s ON s.name = n.name AND s.version = n.version
    ORDER BY n.name FOR UPDATE OF n
), doomed AS MATERIALIZED (
    SELECT c.name, c.seq FROM @.claims c JOIN drops d ON d.name = c.name AND d.seq = c.seq
    WHERE c.name IN (SELECT o.name FROM old o)
    FOR UPDATE OF c SKIP LOCKED
), guarded AS MATERIALIZED (
    SELECT d.name, d.seq FROM drops d
    WHERE d.name IN (SELECT o.name FROM old o)
      AND NOT EXISTS (SELECT 1 FROM doomed x WHERE x.name = d.name AND x.seq = d.seq)
), go AS MATERIALIZED (
    SELECT s.* FROM step s
    WHERE (s.name IN (SELECT o.name FROM old o) AND s.name NOT IN (SELECT g.name FROM guarded g)
           OR s.version = 0 AND s.mark = (SELECT m.mark FROM @.meta m)
              AND NOT EXISTS (SELECT 1 FROM @.names n WHERE n.name = s.name))
      AND (NOT $7 OR (SELECT count(*) FROM step) = (
          SELECT count(*) FROM old o WHERE o.name NOT IN (SELECT g.name FROM guarded g)) + (
          SELECT count(*) FROM step z WHERE z.version = 0 AND z.mark = (SELECT m.mark FROM @.meta m)
              AND NOT EXISTS (SELECT 1 FROM @.names n WHERE n.name = z.name)))
), renewed AS (
    UPDATE @.names n SET version = n.version + 1, last = g.last, readers = g.readers, took_over = g.took_over, touched = now.t
    FROM go g, now WHERE n.name = g.name AND n.version = g.version
    RETURNING n.name
), made AS (
    INSERT INTO @.names (name, version, last, readers, took_over, touched)
    SELECT g.name, g.mark + 1, g.last, g.readers, g.took_over, now.t FROM go g, now WHERE g.version = 0 ORDER BY g.name
    ON CONFLICT (name) DO NOTHING
    RETURNING name
), done AS MATERIALIZED (
    SELECT name FROM renewed UNION ALL SELECT name FROM made
), removed AS (
    DELETE FROM @.claims c USING doomed d WHERE c.name = d.name AND c.seq = d.seq AND c.name IN (SELECT o.name FROM done o)
), put AS (
    INSERT INTO @.claims (name, seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep,
                          heard, delay, died, took_over, origin, note)
    SELECT r.name, r.seq, r.state, pg_catalog.decode(r.id, 'base64'), r.token, r.fence, r.units, r.capacity, r.since, r.until,
           r.ttl, r.patience, r.keep, r.heard, r.delay, r.died, r.took_over, pg_catalog.decode(coalesce(r.origin, ''), 'base64'), r.note
    FROM pg_catalog.json_to_recordset($3::json) AS
        r (name text, seq bigint, state smallint, id text, token bigint, fence bigint, units integer, capacity integer,
           since bigint, until bigint, ttl bigint, patience bigint, keep bigint, heard bigint, delay bigint,
           died boolean, took_over boolean, origin text, note text)
    WHERE r.name IN (SELECT o.name FROM done o)
    ON CONFLICT (name, seq) DO UPDATE SET
        state = excluded.state, token = excluded.token, fence = excluded.fence, since = excluded.since, until = excluded.until,
        ttl = excluded.ttl, patience = excluded.patience, heard = excluded.heard, died = excluded.died,
        took_over = excluded.took_over
), told AS MATERIALIZED (
    SELECT pg_catalog.pg_notify($5, t.text) FROM pg_catalog.json_to_recordset($4::json) AS t (name text, text text)
    WHERE t.name IN (SELECT o.name FROM done o)
), logged AS (
    INSERT INTO @.events (at, kind, name, token, fence, units, capacity, took_over, now, note, reason)
    SELECT pg_catalog.clock_timestamp(), e.kind, e.name, e.token, e.fence, e.units, e.capacity, e.took_over, e.now, e.note, e.reason
    FROM pg_catalog.json_to_recordset($6::json) AS
        e (nr bigint, kind smallint, name text, token bigint, fence bigint, units integer, capacity integer,
           took_over boolean, now boolean, note text, reason text)
    WHERE e.name IN (SELECT o.name FROM done o)
    ORDER BY e.nr
)
-- 1/0 undoes a half of $7's all, which only another's insert between two of the
-- parts above can bring about.
SELECT d.name, (SELECT 0 * count(*) FROM told) / CASE WHEN $7 AND (SELECT count(*) FROM done) < (SELECT count(*) FROM step) THEN 0 ELSE 1 END
FROM done d
UNION ALL SELECT g.name, g.seq FROM guarded g;

--: writeOne
-- What write does, for the usual step: one name that has a row, and one row of its
-- claims to be written. $1 to $6 are the name's, $7 and on the row's.
WITH done AS (
    UPDATE @.names n SET version = n.version + 1, last = $3, readers = $4, took_over = $5, touched = $6
    WHERE n.name = $1 AND n.version = $2 RETURNING n.name
)
INSERT INTO @.claims AS c (name, seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep,
                      heard, delay, died, took_over, origin, note)
SELECT d.name, $7::int8, $8::int2, $9::bytea, $10::int8, $11::int8, $12::int4, $13::int4, $14::int8, $15::int8, $16::int8,
       $17::int8, $18::int8, $19::int8, $20::int8, $21::bool, $22::bool, $23::bytea, $24::text FROM done d
ON CONFLICT (name, seq) DO UPDATE SET
    state = excluded.state, token = excluded.token, fence = excluded.fence, since = excluded.since, until = excluded.until,
    ttl = excluded.ttl, patience = excluded.patience, heard = excluded.heard, died = excluded.died,
    took_over = excluded.took_over
RETURNING c.name, 0::int8;

--: removeOne
-- What write does, for the other usual step: one name, and one row to be removed,
-- $7.
WITH old AS MATERIALIZED (
    SELECT n.name FROM @.names n WHERE n.name = $1 AND n.version = $2 FOR UPDATE
), doomed AS MATERIALIZED (
    SELECT c.seq FROM @.claims c WHERE c.name = $1 AND c.seq = $7 AND EXISTS (SELECT 1 FROM old) FOR UPDATE SKIP LOCKED
), done AS (
    UPDATE @.names n SET version = n.version + 1, last = $3, readers = $4, took_over = $5, touched = $6
    WHERE n.name = $1 AND n.version = $2 AND EXISTS (SELECT 1 FROM doomed) RETURNING n.name
), gone AS (
    DELETE FROM @.claims c WHERE c.name = $1 AND c.seq = $7 AND EXISTS (SELECT 1 FROM done)
)
SELECT d.name, 0::int8 FROM done d
UNION ALL SELECT o.name, $7::int8 FROM old o WHERE NOT EXISTS (SELECT 1 FROM doomed);

--: takeFree
-- Grants a name that is free and not waited for, if it still is as it was at the
-- version $2. $3 tells whether the claim is shared, $4 whether it is exclusive; the
-- rest is the claim's.
WITH t AS MATERIALIZED (
    SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now
), done AS (
    UPDATE @.names n SET version = n.version + 1, last = n.last + 1, took_over = false, touched = t.now,
        readers = CASE WHEN $3::bool THEN n.last + 1 ELSE n.readers END
    FROM t WHERE n.name = $1 AND n.version = $2 RETURNING n.last
)
INSERT INTO @.claims AS c (name, seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep,
                           heard, delay, died, took_over, origin, note)
SELECT $1, d.last, 1, $5::bytea, d.last, CASE WHEN $3::bool OR $4::bool THEN d.last ELSE 0 END, $6::int4, $7::int4, t.now, t.now + $8::int8,
       $8::int8, $9::int8, $10::int8, t.now, $11::int8, false, $12::bool, ''::bytea, $13::text FROM done d, t
RETURNING c.token;

--: handOn
-- See the schema.
SELECT version, took_over, next, place, token, ttl, until, dead FROM @.hand_on($1, $2, $3, $4, $5);

--: schema
SELECT version FROM @.meta;

--: news
-- The live claims on these names, for clients that can't LISTEN.
SELECT id, state, seq, token FROM @.claims WHERE name = ANY ($1::text[]) AND state IN (1, 2, 5);

--: list
-- The claims and places of the next names that begin with $1, after $2: $3 names.
WITH w AS MATERIALIZED (
    SELECT DISTINCT c.name FROM @.claims c
    WHERE c.name > $2 AND c.name >= $1 AND pg_catalog.starts_with(c.name, $1)
    ORDER BY c.name LIMIT $3
)
SELECT w.name, 0::bigint, (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint),
       1::bigint, 0::bigint, 0::bigint, false,
       c.seq, c.state, c.id, c.token, c.fence, c.units, c.capacity, c.since, c.until, c.ttl, c.patience, c.keep,
       c.heard, c.delay, c.died, c.took_over, c.origin, c.note
FROM w JOIN @.claims c ON c.name = w.name
ORDER BY w.name, c.seq;

--: events
SELECT seq, at, kind, name, token, fence, units, capacity, took_over, now, note, reason
FROM @.events WHERE seq > $1 ORDER BY seq LIMIT $2;

--: get
SELECT t.now, r.value, r.version, r.token_name, r.token, r.until
FROM (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now) t
LEFT JOIN @.records r ON r.key = $1 AND r.until > t.now;

--: put
-- Writes a record if its version is $3 and it has not seen a larger token of the
-- same name. It yields the new version, or nothing.
WITH t AS MATERIALIZED (
    SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now
), fresh AS (
    INSERT INTO @.records AS r (key, value, version, token_name, token, until)
    SELECT $1, $2, pg_catalog.nextval('@.versions'::regclass), $4, $5, t.now + $6 FROM t
    WHERE $3 = 0 OR EXISTS (SELECT 1 FROM @.records o WHERE o.key = $1)
    ON CONFLICT (key) DO UPDATE SET
        value = excluded.value, version = excluded.version, until = excluded.until,
        token_name = CASE WHEN excluded.token_name = '' AND r.until > (SELECT now FROM t) THEN r.token_name ELSE excluded.token_name END,
        token      = CASE WHEN excluded.token_name = '' AND r.until > (SELECT now FROM t) THEN r.token ELSE excluded.token END
    WHERE CASE WHEN r.until <= (SELECT now FROM t) THEN $3 = 0
          ELSE r.version = $3 AND NOT (r.token_name = excluded.token_name AND r.token > excluded.token) END
    RETURNING r.version
)
SELECT version FROM fresh;

--: delete
DELETE FROM @.records WHERE key = $1 AND version = $2
    AND until > (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint)
RETURNING 1;

--: records
SELECT r.key, r.value, r.version, r.token_name, r.token, r.until - t.now
FROM (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now) t
JOIN @.records r ON r.until > t.now
WHERE r.key > $2 AND r.key >= $1 AND pg_catalog.starts_with(r.key, $1)
ORDER BY r.key LIMIT $3;

--: sweepNames
-- Forgets names that nobody used for $1 microseconds. The mark is raised in the
-- same step, so that a name that comes back goes on above all that it gave out, its
-- versions too: a client that remembers an old one is not to meet it again.
WITH old AS MATERIALIZED (
    SELECT n.name, n.last, n.version FROM @.names n
    WHERE n.touched < (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint - $1
      AND NOT EXISTS (SELECT 1 FROM @.claims c WHERE c.name = n.name)
    ORDER BY n.name LIMIT $2 FOR UPDATE OF n SKIP LOCKED
), raised AS (
    UPDATE @.meta SET mark = (SELECT greatest(mark, max(last), max(version)) FROM old) WHERE EXISTS (SELECT 1 FROM old) RETURNING mark
)
DELETE FROM @.names n USING old WHERE n.name = old.name AND n.last = old.last
    AND n.touched < (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint - $1
    AND EXISTS (SELECT 1 FROM raised);

--: sweepRecords
DELETE FROM @.records WHERE key IN (
    SELECT key FROM @.records WHERE until <= (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint)
    ORDER BY until LIMIT $1 FOR UPDATE SKIP LOCKED);

--: sweepEvents
DELETE FROM @.events WHERE seq <= (SELECT max(seq) FROM @.events) - $1;

--: guard
-- Locks the rows of the live claims that carry a fence, so that nobody can take
-- the name over before the transaction ends. A row that is skipped is being
-- removed right now.
SELECT c.until - (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint)
FROM @.claims c
WHERE c.name = $1 AND c.fence = $2 AND c.state IN (1, 2)
  AND c.until > (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint)
FOR KEY SHARE SKIP LOCKED;

--: once
INSERT INTO @.once (key) VALUES ($1) ON CONFLICT (key) DO NOTHING RETURNING 1;
