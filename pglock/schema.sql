-- The schema of a dibs lease store, version 1.
--
-- Moments are microseconds since 1970 by the server's clock, durations are
-- microseconds; the views held and waiting show them for people.
--
-- Everything about a name changes in one statement, which holds the name's row
-- and is refused if its version is not the one that the change was worked out
-- from. So nobody holds a lock of PostgreSQL while a client thinks. The function
-- hand_on does the usual release by itself, under the name's row too.

CREATE SCHEMA IF NOT EXISTS @;

CREATE TABLE @.meta (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL, -- of this schema
    mark    bigint  NOT NULL  -- the largest number or version that a forgotten name has had
);

CREATE TABLE @.names (
    name      text COLLATE "C" PRIMARY KEY,
    version   bigint  NOT NULL, -- grows with every change of the name or its claims
    last      bigint  NOT NULL, -- the newest number given out: a token or a place
    readers   bigint  NOT NULL, -- the fence of the present generation of shared claims
    took_over boolean NOT NULL, -- a claim has died since the last grant
    touched   bigint  NOT NULL  -- when it last changed
) WITH (fillfactor = 70);

-- What takes up units, and who waits. A claim's row is also what a transaction
-- locks FOR KEY SHARE to be guarded: it can be renewed then, but not removed.
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
    took_over boolean  NOT NULL,
    origin    bytea    NOT NULL, -- the claim to be replaced
    note      text     NOT NULL,
    PRIMARY KEY (name, seq)
) WITH (fillfactor = 70);

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
FROM @.claims WHERE state < 6 AND (state IN (3, 4) OR until > 1e6 * extract(epoch FROM pg_catalog.clock_timestamp()));

CREATE VIEW @.waiting AS
SELECT name, seq AS place, units, capacity,
       pg_catalog.to_timestamp(since / 1e6) AS since,
       pg_catalog.to_timestamp(until / 1e6) AS patience_ends,
       note
FROM @.claims WHERE state = 6 AND until > 1e6 * extract(epoch FROM pg_catalog.clock_timestamp());

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

-- Gives back the claim with this ID and token, and hands the name on, in the usual
-- cases: it is the only claim, and nobody is in line, or the first in line is alive
-- and wants the name for itself. Else it does nothing and yields no row. Each of its
-- statements sees what was committed before it (READ COMMITTED), so all after the
-- first see the name as it is. The moment comes after that too: an ask that is refused
-- later is refused for what this has done.
CREATE FUNCTION @.hand_on(of text, by bytea, under bigint, channel text, most bigint)
RETURNS TABLE (version bigint, took_over boolean, next bytea, place bigint, token bigint, ttl bigint, until bigint, dead boolean)
LANGUAGE plpgsql AS $$
DECLARE
    n     record;
    head  record;
    mine  bigint;
    now   bigint;
BEGIN
    SELECT x.version, x.last, x.took_over INTO n FROM @.names x WHERE x.name = of FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    now := (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint;
    SELECT c.seq INTO mine FROM @.claims c
    WHERE c.name = of AND c.id = by AND c.token = under AND c.state IN (1, 2) AND c.until > now
    FOR UPDATE SKIP LOCKED; -- a guarded row is skipped
    IF NOT FOUND THEN RETURN; END IF;
    PERFORM FROM @.claims c WHERE c.name = of AND (c.state < 6 AND c.seq <> mine OR c.state = 6 AND c.origin <> '');
    IF FOUND THEN RETURN; END IF;
    SELECT c.seq, c.id, c.until, c.units = c.capacity AS whole INTO head FROM @.claims c
    WHERE c.name = of AND c.state = 6 ORDER BY c.seq LIMIT 1;
    IF head.seq IS NULL THEN
        UPDATE @.names x SET version = n.version + 1, touched = now WHERE x.name = of;
        DELETE FROM @.claims c WHERE c.name = of AND c.seq = mine;
        version := n.version + 1;
        took_over := n.took_over;
        RETURN NEXT;
        RETURN;
    END IF;
    IF NOT head.whole OR head.until <= now THEN RETURN; END IF;
    version := n.version + 1;
    took_over := false;
    next := head.id;
    place := head.seq;
    token := n.last + 1;
    until := least(now + most, head.until);
    ttl := until - now;
    dead := n.took_over;
    UPDATE @.names x SET version = hand_on.version, last = hand_on.token, took_over = false, touched = now WHERE x.name = of;
    DELETE FROM @.claims c WHERE c.name = of AND c.seq = mine;
    UPDATE @.claims c SET state = 2, token = hand_on.token, fence = hand_on.token, since = now, until = hand_on.until, took_over = dead
    WHERE c.name = of AND c.seq = place;
    PERFORM pg_catalog.pg_notify(channel, pg_catalog.concat_ws(' ', 'h',
        pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(next), 1, 16), 'hex'), place, token, token, ttl, until, dead::int));
    RETURN NEXT;
END $$;
