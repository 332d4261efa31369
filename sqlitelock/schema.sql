-- The schema of a dibs lock file, version 1 (PRAGMA user_version).
-- Durations and moments are nanoseconds. A moment of a claim is read from
-- CLOCK_BOOTTIME in the row's own domain; it means nothing in any other.

-- One row. Every token, place number, sequence and record version is drawn from
-- mark, so that all of them grow for ever and an idle name needs no row.
CREATE TABLE meta (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    mark   INTEGER NOT NULL, -- no larger number was drawn
    base   INTEGER NOT NULL, -- the record clock (Unix) ...
    anchor INTEGER NOT NULL, -- ... at this moment ...
    domain INTEGER NOT NULL, -- ... of this clock domain
    high   INTEGER NOT NULL  -- the latest moment of the record clock that was written
) STRICT;

-- What takes up units, and who waits.
CREATE TABLE claims (
    name     TEXT    NOT NULL,
    seq      INTEGER NOT NULL, -- from mark; a place's number
    state    INTEGER NOT NULL, -- driver.State; 7: ended, and its end is still to be told (took)
    id       TEXT    NOT NULL,
    token    INTEGER NOT NULL,
    fence    INTEGER NOT NULL,
    units    INTEGER NOT NULL,
    capacity INTEGER NOT NULL,
    since    INTEGER NOT NULL, -- granted, or the place taken
    until    INTEGER NOT NULL, -- the end of the state
    ttl      INTEGER NOT NULL,
    patience INTEGER NOT NULL,
    keep     INTEGER NOT NULL,
    kept     INTEGER NOT NULL, -- when Keep began to count; 0: not yet
    delay    INTEGER NOT NULL,
    flags    INTEGER NOT NULL,
    client   INTEGER NOT NULL, -- its life file; 0: it has none
    proof    INTEGER NOT NULL, -- which file that was
    domain   INTEGER NOT NULL, -- the clock domain of since, until and kept
    origin   TEXT    NOT NULL, -- Claim.From
    note     TEXT    NOT NULL,
    PRIMARY KEY (name, seq)
) STRICT, WITHOUT ROWID;

-- What a woken client looks for: its claims that were handed over (2), revoked (5)
-- or ended (3, 4, 7).
-- Not "state IN (2, 3, 4, 5, 7)", for which SQLite builds a table at every write.
CREATE INDEX news ON claims (client) WHERE state > 1 AND state <> 6;

CREATE TABLE records (
    key        TEXT    PRIMARY KEY,
    value      BLOB    NOT NULL,
    version    INTEGER NOT NULL, -- from mark
    token_name TEXT    NOT NULL,
    token      INTEGER NOT NULL,
    until      INTEGER NOT NULL  -- by the record clock
) STRICT;

CREATE INDEX records_until ON records (until);

CREATE TABLE events (
    seq       INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL, -- by the record clock
    kind      INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    token     INTEGER NOT NULL,
    fence     INTEGER NOT NULL,
    units     INTEGER NOT NULL,
    capacity  INTEGER NOT NULL,
    took_over INTEGER NOT NULL,
    now       INTEGER NOT NULL,
    note      TEXT    NOT NULL,
    reason    TEXT    NOT NULL
) STRICT;

INSERT INTO meta VALUES (1, 0, 0, 0, 0, 0);
