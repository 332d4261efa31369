-- The schema of a dibs lease store, version 1.
--
-- Moments are microseconds since 1970 by the server's clock, durations are
-- microseconds; the views held and waiting show them for people.
--
-- Everything about a name changes in one statement, which holds the name's row
-- and is refused if its version is not the one that the change was worked out
-- from. So nobody holds a lock of PostgreSQL while a client thinks.
--
-- A claim's row is also what a transaction locks FOR KEY SHARE to be guarded: it can
-- be renewed then, but not removed. Whoever removes a claim locks its row FOR UPDATE
-- first, also if that is a name's own, which stays: so PostgreSQL notes the change as
-- one of the row's key, and who comes with an old snapshot is refused.

CREATE SCHEMA IF NOT EXISTS @;

CREATE TABLE @.meta (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL, -- of this schema
    mark    bigint  NOT NULL  -- the largest number or version that a forgotten name has had
);

-- A name, and one of the claims on it: a lock that nobody contends for is one row,
-- which changes where it stands (no index has any column of it but the name).
CREATE TABLE @.names (
    name      text COLLATE "C" PRIMARY KEY,
    version   bigint  NOT NULL, -- grows with every change of the name or its claims
    last      bigint  NOT NULL, -- the newest number given out: a token or a place
    readers   bigint  NOT NULL, -- the fence of the present generation of shared claims
    took_over boolean NOT NULL, -- a claim has died since the last grant
    touched   bigint  NOT NULL, -- when it last changed
    others    integer NOT NULL, -- how many rows of claims are this name's
    plain     boolean NOT NULL, -- these are all places, of claims that replace none
    -- The claim, which stays here until it ends: as in claims.
    seq       bigint   NOT NULL DEFAULT 0,
    state     smallint NOT NULL DEFAULT 0, -- 0: there is none, and the rest means nothing
    id        bytea    NOT NULL DEFAULT '',
    token     bigint   NOT NULL DEFAULT 0,
    fence     bigint   NOT NULL DEFAULT 0,
    units     integer  NOT NULL DEFAULT 0,
    capacity  integer  NOT NULL DEFAULT 0,
    since     bigint   NOT NULL DEFAULT 0,
    until     bigint   NOT NULL DEFAULT 0,
    ttl       bigint   NOT NULL DEFAULT 0,
    patience  bigint   NOT NULL DEFAULT 0,
    keep      bigint   NOT NULL DEFAULT 0,
    heard     bigint   NOT NULL DEFAULT 0,
    delay     bigint   NOT NULL DEFAULT 0,
    died      boolean  NOT NULL DEFAULT false,
    by_force  boolean  NOT NULL DEFAULT false, -- took_over, of the claim
    origin    bytea    NOT NULL DEFAULT '',
    note      text     NOT NULL DEFAULT ''
) WITH (fillfactor = 60);

-- The other claims, and who waits.
CREATE TABLE @.claims (
    name      text COLLATE "C" NOT NULL,
    seq       bigint   NOT NULL, -- the number drawn when the row was made; a place's number
    state     smallint NOT NULL, -- 1 held, 2 handed over, 3 kept, 4 draining, 5 revoked, 6 waiting
    id        bytea    NOT NULL, -- proves the claim: not for eyes
    token     bigint   NOT NULL,
    fence     bigint   NOT NULL,
    units     integer  NOT NULL,
    capacity  integer  NOT NULL,
    since     bigint   NOT NULL, -- granted, or the place taken
    until     bigint   NOT NULL, -- the end of the state
    ttl       bigint   NOT NULL,
    patience  bigint   NOT NULL,
    keep      bigint   NOT NULL,
    heard     bigint   NOT NULL, -- when Keep began to count; 0: not yet
    delay     bigint   NOT NULL,
    died      boolean  NOT NULL,
    by_force  boolean  NOT NULL,
    origin    bytea    NOT NULL, -- the claim to be replaced
    note      text     NOT NULL,
    PRIMARY KEY (name, seq)
) WITH (fillfactor = 70);

-- All claims and places.
CREATE VIEW @.rows AS
SELECT name, seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep, heard, delay, died, by_force, origin, note
FROM @.names WHERE state <> 0
UNION ALL
SELECT name, seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep, heard, delay, died, by_force, origin, note
FROM @.claims;

CREATE TABLE @.records (
    key        text COLLATE "C" PRIMARY KEY,
    value      bytea  NOT NULL,
    version    bigint NOT NULL,
    token_name text   NOT NULL,
    token      bigint NOT NULL,
    until      bigint NOT NULL
);
CREATE INDEX records_until ON @.records (until);

-- No version of a record is ever given out twice, not even by another key.
CREATE SEQUENCE @.versions;

CREATE TABLE @.events (
    seq       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at        timestamptz NOT NULL,
    kind      smallint NOT NULL, -- 1 granted, 2 handed over, 3 released, 4 expired, 5 revoked
    name      text COLLATE "C" NOT NULL,
    token     bigint   NOT NULL,
    fence     bigint   NOT NULL,
    units     integer  NOT NULL,
    capacity  integer  NOT NULL,
    took_over boolean  NOT NULL,
    now       boolean  NOT NULL,
    note      text     NOT NULL,
    reason    text     NOT NULL
);

-- Keys that a transaction has run to its end (OnceTx).
CREATE TABLE @.once (
    key text COLLATE "C" PRIMARY KEY,
    at  timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);

CREATE VIEW @.held AS
SELECT name,
       (ARRAY['held', 'handed', 'kept', 'draining', 'revoked'])[state] AS state,
       token, fence, units, capacity,
       pg_catalog.to_timestamp(since / 1e6) AS since,
       pg_catalog.to_timestamp(until / 1e6) AS until,
       note
FROM @.rows WHERE state < 6 AND (state IN (3, 4) OR until > 1e6 * extract(epoch FROM pg_catalog.clock_timestamp()));

CREATE VIEW @.waiting AS
SELECT name, seq AS place, units, capacity,
       pg_catalog.to_timestamp(since / 1e6) AS since,
       pg_catalog.to_timestamp(until / 1e6) AS patience_ends,
       note
FROM @.rows WHERE state = 6 AND until > 1e6 * extract(epoch FROM pg_catalog.clock_timestamp());

INSERT INTO @.meta (version, mark) VALUES (1, 0);

-- The fences of advisory locks (pgadvisory://): of a key, the newest writer's.
CREATE TABLE @.fences (
    k   bigint  NOT NULL,
    two boolean NOT NULL, -- k stands for two int4
    v   bigint  NOT NULL,
    PRIMARY KEY (k, two)
) WITH (fillfactor = 70);
-- Writers step their fence by two, so the numbers do: no reader's token may be one
-- that a writer has had.
CREATE SEQUENCE @.tokens INCREMENT BY 2;
