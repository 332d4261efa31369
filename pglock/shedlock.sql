-- The statements on a table of ShedLock. The line above a statement names it; the
-- words in braces stand for the table and its columns. Columns hold times of UTC;
-- what goes in and comes out is microseconds.

--: columns
-- What the table $1 is, by the columns $2.
SELECT a.attname::text, pg_catalog.format_type(a.atttypid, NULL), a.atttypmod, EXISTS (
    SELECT FROM pg_catalog.pg_index x WHERE x.indrelid = a.attrelid AND x.indisunique AND x.indpred IS NULL
    AND x.indnkeyatts = 1 AND x.indkey[0] = a.attnum)
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = pg_catalog.to_regclass($1) AND a.attname = ANY ($2::text[]) AND NOT a.attisdropped;

--: read
SELECT i.n, (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint), t.xmin::text,
       {until µs}, {at µs}, t.{by}
FROM pg_catalog.unnest($1::text[]) i (n) LEFT JOIN {table} t ON t.{name} = i.n;

--: list
-- The next names that begin with $1, after $2, and are closed: $3 of them.
SELECT t.{name}, (SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint), t.xmin::text,
       {until µs}, {at µs}, t.{by}
FROM {table} t
WHERE pg_catalog.starts_with(t.{name}, $1) AND t.{name} > $2 COLLATE "C"
  AND t.{until}::timestamp > pg_catalog.timezone('utc', pg_catalog.clock_timestamp())
ORDER BY t.{name} COLLATE "C" LIMIT $3;

--: insert
-- Makes rows for names ($1) that had none.
INSERT INTO {table} ({name}, {until}, {at}, {by})
SELECT i.n, 'epoch'::timestamp + i.u * '1 microsecond'::interval, 'epoch'::timestamp + i.a * '1 microsecond'::interval, i.b
FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::bigint[]), pg_catalog.unnest($3::bigint[]), pg_catalog.unnest($4::text[])) i (n, u, a, b)
ORDER BY i.n
ON CONFLICT ({name}) DO NOTHING
RETURNING {name};

--: update
-- Writes the rows of names ($1) that are still those ($2) that were read. One that
-- somebody else has in hand is passed over: it is none of the others' business.
WITH i AS (
    SELECT * FROM ROWS FROM (pg_catalog.unnest($1::text[]), pg_catalog.unnest($2::text[]), pg_catalog.unnest($3::bigint[]), pg_catalog.unnest($4::bigint[]), pg_catalog.unnest($5::text[])) i (n, x, u, a, b)
), l AS MATERIALIZED (
    SELECT i.* FROM i JOIN {table} t ON t.{name} = i.n WHERE t.xmin::text = i.x
    FOR NO KEY UPDATE OF t SKIP LOCKED
)
UPDATE {table} t
SET {until} = 'epoch'::timestamp + l.u * '1 microsecond'::interval, {at} = 'epoch'::timestamp + l.a * '1 microsecond'::interval, {by} = l.b
FROM l WHERE t.{name} = l.n
RETURNING t.{name};

--: create
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SET LOCAL lock_timeout = '15s';
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('dibs init'));
CREATE TABLE IF NOT EXISTS {table} (
    {name} varchar(64) NOT NULL PRIMARY KEY,
    {until} timestamp NOT NULL,
    {at} timestamp NOT NULL,
    {by} varchar(255) NOT NULL
);
COMMIT;
