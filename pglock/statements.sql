-- Every statement that runs after the store was opened. The line above a
-- statement names it; @ stands for the schema's name.

--: read
-- The state of names. What is judged by the moment that comes with it was so
-- when the statement began, and that was after the caller asked.
SELECT w.name, m.mark, (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint),
       n.version, n.last, n.readers, n.took_over, c.lone,
       c.seq, c.state, c.id, c.token, c.fence, c.units, c.capacity, c.since, c.until, c.ttl, c.patience, c.keep, c.heard, c.delay, c.died, c.by_force, c.origin, c.note
FROM @.meta m CROSS JOIN pg_catalog.unnest($1::text[]) w (name)
LEFT JOIN @.names n ON n.name = w.name
LEFT JOIN LATERAL (
    SELECT true AS lone, n.seq, n.state, n.id, n.token, n.fence, n.units, n.capacity, n.since, n.until, n.ttl, n.patience, n.keep, n.heard, n.delay, n.died, n.by_force, n.origin, n.note WHERE n.state <> 0
    UNION ALL
    SELECT false, o.seq, o.state, o.id, o.token, o.fence, o.units, o.capacity, o.since, o.until, o.ttl, o.patience, o.keep, o.heard, o.delay, o.died, o.by_force, o.origin, o.note FROM @.claims o WHERE o.name = n.name AND n.others > 0
) c ON true
ORDER BY w.name, c.seq;

--: write
-- Writes steps, each on one name: all of a step or nothing. $1 are the names, each
-- with the claim in its own row, $2 the rows to be removed, $3 the rows of claims to
-- be written, $4 what is to be told on the channel $5, $6 the events. A step is
-- written if the name's version is still the one that was read (0: it has no row, and
-- the mark is the same), and no transaction relies on a row to be removed. $7: write
-- all steps or none.
--
-- It yields the names written (seq 0), and the rows that are relied on.
WITH step AS MATERIALIZED (
    SELECT * FROM pg_catalog.json_to_recordset($1::json) AS
        s (name text, version bigint, last bigint, readers bigint, took_over boolean, mark bigint, others integer, plain boolean,
           seq bigint, state smallint, id text, token bigint, fence bigint, units integer, capacity integer,
           since bigint, until bigint, ttl bigint, patience bigint, keep bigint, heard bigint, delay bigint,
           died boolean, by_force boolean, origin text, note text)
), now AS MATERIALIZED (
    SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS t
), drops AS MATERIALIZED (
    SELECT * FROM pg_catalog.json_to_recordset($2::json) AS d (name text, seq bigint, fence bigint, lone boolean)
), old AS MATERIALIZED (
    -- In order, so that two writers never wait for each other.
    SELECT n.name FROM @.names n JOIN step s ON s.name = n.name AND s.version = n.version
    ORDER BY n.name FOR NO KEY UPDATE OF n
), alone AS MATERIALIZED (
    SELECT n.name, n.seq FROM @.names n JOIN drops d ON d.name = n.name AND d.lone AND d.fence <> 0
    WHERE n.name IN (SELECT o.name FROM old o)
    FOR UPDATE OF n SKIP LOCKED
), doomed AS MATERIALIZED (
    SELECT c.name, c.seq FROM @.claims c JOIN drops d ON d.name = c.name AND d.seq = c.seq AND d.fence <> 0
    WHERE c.name IN (SELECT o.name FROM old o)
    FOR UPDATE OF c SKIP LOCKED
), guarded AS MATERIALIZED (
    SELECT d.name, d.seq FROM drops d
    WHERE d.fence <> 0 AND d.name IN (SELECT o.name FROM old o)
      AND NOT EXISTS (SELECT 1 FROM alone x WHERE x.name = d.name AND x.seq = d.seq)
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
    UPDATE @.names n SET version = n.version + 1, last = g.last, readers = g.readers, took_over = g.took_over, touched = now.t,
        others = g.others, plain = g.plain,
        seq = g.seq, state = g.state, id = pg_catalog.decode(coalesce(g.id, ''), 'base64'), token = g.token, fence = g.fence, units = g.units, capacity = g.capacity, since = g.since, until = g.until, ttl = g.ttl, patience = g.patience, keep = g.keep, heard = g.heard, delay = g.delay, died = g.died, by_force = g.by_force, origin = pg_catalog.decode(coalesce(g.origin, ''), 'base64'), note = g.note
    FROM go g, now WHERE n.name = g.name AND n.version = g.version
    RETURNING n.name
), made AS (
    INSERT INTO @.names (name, version, last, readers, took_over, touched, others, plain,
        seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep, heard, delay, died, by_force, origin, note)
    SELECT g.name, g.mark + 1, g.last, g.readers, g.took_over, now.t, g.others, g.plain,
        g.seq, g.state, pg_catalog.decode(coalesce(g.id, ''), 'base64'), g.token, g.fence, g.units, g.capacity, g.since, g.until, g.ttl, g.patience, g.keep, g.heard, g.delay, g.died, g.by_force, pg_catalog.decode(coalesce(g.origin, ''), 'base64'), g.note
    FROM go g, now WHERE g.version = 0 ORDER BY g.name
    ON CONFLICT (name) DO NOTHING
    RETURNING name
), done AS MATERIALIZED (
    SELECT name FROM renewed UNION ALL SELECT name FROM made
), removed AS (
    DELETE FROM @.claims c USING drops d WHERE c.name = d.name AND c.seq = d.seq AND c.name IN (SELECT o.name FROM done o)
), put AS (
    INSERT INTO @.claims (name, seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep, heard, delay, died, by_force, origin, note)
    SELECT r.name, r.seq, r.state, pg_catalog.decode(coalesce(r.id, ''), 'base64'), r.token, r.fence, r.units, r.capacity, r.since, r.until, r.ttl, r.patience, r.keep, r.heard, r.delay, r.died, r.by_force, pg_catalog.decode(coalesce(r.origin, ''), 'base64'), r.note
    FROM pg_catalog.json_to_recordset($3::json) AS
        r (name text, seq bigint, state smallint, id text, token bigint, fence bigint, units integer, capacity integer,
           since bigint, until bigint, ttl bigint, patience bigint, keep bigint, heard bigint, delay bigint,
           died boolean, by_force boolean, origin text, note text)
    WHERE r.name IN (SELECT o.name FROM done o)
    ON CONFLICT (name, seq) DO UPDATE SET
        state = excluded.state, token = excluded.token, fence = excluded.fence, since = excluded.since, until = excluded.until,
        ttl = excluded.ttl, patience = excluded.patience, heard = excluded.heard, died = excluded.died,
        by_force = excluded.by_force
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
-- What write does, for a usual step: one name that has a row, and a place to be
-- written. $1 to $6 are the name's, $7 and on the place's.
WITH done AS (
    UPDATE @.names n SET version = n.version + 1, last = $3, others = $4, plain = $5, touched = $6
    WHERE n.name = $1 AND n.version = $2 RETURNING n.name
)
INSERT INTO @.claims AS c (name, seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep, heard, delay, died, by_force, origin, note)
SELECT d.name, $7::int8, $8::int2, $9::bytea, $10::int8, $11::int8, $12::int4, $13::int4, $14::int8, $15::int8, $16::int8,
       $17::int8, $18::int8, $19::int8, $20::int8, $21::bool, $22::bool, $23::bytea, $24::text FROM done d
ON CONFLICT (name, seq) DO UPDATE SET until = excluded.until, patience = excluded.patience
RETURNING c.name, 0::int8;

--: takeFree
-- Grants a name that is free and not waited for. $2 tells whether the claim is shared,
-- $3 whether it is exclusive; the rest is the claim's.
UPDATE @.names n SET version = n.version + 1, last = n.last + 1, took_over = false, touched = t.now,
    readers = CASE WHEN $2::bool THEN n.last + 1 ELSE n.readers END,
    seq = n.last + 1, state = 1, id = $4::bytea, token = n.last + 1, fence = CASE WHEN $2::bool OR $3::bool THEN n.last + 1 ELSE 0 END,
    units = $5::int4, capacity = $6::int4, since = t.now, until = t.now + $7::int8, ttl = $7::int8, keep = $8::int8,
    heard = t.now, delay = $9::int8, died = false, by_force = n.took_over, origin = '', note = $10::text
FROM (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now OFFSET 0) t
WHERE n.name = $1 AND n.state = 0 AND n.others = 0
RETURNING n.token, n.fence, n.by_force;

--: giveBack
-- Releases the only claim on a name that nobody waits for. Nothing but this is lost
-- if the server's power fails before it is on the disk, and the claim ends by its
-- TTL; whatever is granted later is on the disk after it. So the commit does not
-- wait for the disk.
WITH x AS MATERIALIZED (
    SELECT n.name FROM @.names n
    WHERE n.name = $1 AND n.id = $2::bytea AND n.token = $3::int8 AND n.state BETWEEN 1 AND 2 AND n.others = 0
      AND n.until > (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint
    FOR UPDATE SKIP LOCKED -- a guarded row is skipped
)
UPDATE @.names n SET version = n.version + 1, state = 0 FROM x WHERE n.name = x.name
RETURNING pg_catalog.set_config('synchronous_commit', 'off', true);

--: handOn
-- Releases a claim, and hands the name to the first in line, if it is alive and wants
-- it for itself, and there are but places of claims that replace none. What is in
-- claims was so at the version that it was read with (s), and the name still has it
-- once it is locked (n); a guarded one is skipped. $4
-- is the channel, $5 how long the claim lives until it is heard of. It yields the
-- news, which it has told.
WITH h AS MATERIALIZED (
    SELECT n.version, n.last + 1 AS next, n.took_over AS dead, t.now, least(t.now + $5::int8, c.until) AS ends, c.*
    FROM (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now OFFSET 0) t
    CROSS JOIN @.names s CROSS JOIN @.names n
    CROSS JOIN LATERAL (SELECT * FROM @.claims c WHERE c.name = s.name ORDER BY c.seq LIMIT 1) c
    WHERE s.name = $1 AND n.name = $1 AND n.version = s.version AND n.id = $2::bytea AND n.token = $3::int8 AND n.state BETWEEN 1 AND 2 AND n.until > t.now
      AND n.others > 0 AND n.plain AND c.units = c.capacity AND c.until > t.now
    FOR UPDATE OF n SKIP LOCKED
), u AS (
    UPDATE @.names n SET version = n.version + 1, last = h.next, took_over = false, touched = h.now, others = n.others - 1,
        seq = h.seq, state = 2, id = h.id, token = h.next, fence = h.next, units = h.units, capacity = h.capacity, since = h.now,
        until = h.ends, ttl = h.ttl, patience = h.patience, keep = h.keep, heard = h.heard, delay = h.delay, died = false,
        by_force = h.dead, origin = '', note = h.note
    FROM h WHERE n.name = $1 AND n.version = h.version
    RETURNING h.seq, pg_catalog.concat_ws(' ', 'h', pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(h.id), 1, 16), 'hex'),
        h.seq, h.next, h.next, h.ends - h.now, h.ends, h.dead::int) AS news
), d AS (
    DELETE FROM @.claims c USING u WHERE c.name = $1 AND c.seq = u.seq
)
SELECT u.news, pg_catalog.pg_notify($4, u.news) FROM u;

--: renew
-- Proves claims that are held, each in its name's own row, in order.
WITH t AS MATERIALIZED (
    SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now
), r AS MATERIALIZED (
    SELECT n.name, u.ttl
    FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::bytea[]), pg_catalog.unnest($3::int8[]), pg_catalog.unnest($4::int8[])) u (name, id, token, ttl)
    JOIN @.names n ON n.name = u.name AND n.id = u.id AND n.token = u.token
    WHERE n.state = 1 AND n.until > (SELECT now FROM t)
    ORDER BY n.name FOR NO KEY UPDATE OF n
)
UPDATE @.names n SET version = n.version + 1, touched = t.now, until = greatest(n.until, t.now + r.ttl), ttl = r.ttl
FROM r, t WHERE n.name = r.name
RETURNING n.name;

--: schema
SELECT version FROM @.meta;

--: news
-- The live claims on these names, for clients that can't LISTEN.
SELECT id, state, seq, token FROM @.rows WHERE name = ANY ($1::text[]) AND state IN (1, 2, 5);

--: list
-- The claims and places of the next names that begin with $1, after $2: $3 names.
WITH w AS MATERIALIZED (
    SELECT n.name FROM @.names n
    WHERE n.name > $2 AND n.name >= $1 AND pg_catalog.starts_with(n.name, $1) AND (n.state <> 0 OR n.others > 0)
    ORDER BY n.name LIMIT $3
)
SELECT w.name, 0::bigint, (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint),
       1::bigint, 0::bigint, 0::bigint, false, false,
       c.seq, c.state, c.id, c.token, c.fence, c.units, c.capacity, c.since, c.until, c.ttl, c.patience, c.keep, c.heard, c.delay, c.died, c.by_force, c.origin, c.note
FROM w JOIN @.rows c ON c.name = w.name
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
      AND n.state = 0 AND n.others = 0
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
WITH n AS (
    SELECT n.until FROM @.names n WHERE n.name = $1 AND n.fence = $2 AND n.state IN (1, 2) FOR KEY SHARE SKIP LOCKED
), c AS (
    SELECT c.until FROM @.claims c WHERE c.name = $1 AND c.fence = $2 AND c.state IN (1, 2) FOR KEY SHARE SKIP LOCKED
)
SELECT a.until - t.now
FROM (SELECT until FROM n UNION ALL SELECT until FROM c) a,
     (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS now) t
WHERE a.until > t.now;

--: once
INSERT INTO @.once (key) VALUES ($1) ON CONFLICT (key) DO NOTHING RETURNING 1;
