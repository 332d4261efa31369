-- Every statement that runs after the file was opened, each prepared once for
-- each connection. The line above a statement names it.

--: begin
BEGIN IMMEDIATE;

--: beginRead
BEGIN;

--: commit
COMMIT;

--: rollback
ROLLBACK;

--: meta
SELECT mark, base, anchor, domain, high FROM meta;

--: setMark
UPDATE meta SET mark = ? WHERE id = 1;

--: setMeta
UPDATE meta SET mark = ?, base = ?, anchor = ?, domain = ?, high = ? WHERE id = 1;

--: load
SELECT seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep, kept,
       delay, flags, client, proof, domain, origin, note
FROM claims WHERE name = ? ORDER BY seq;

--: add
INSERT INTO claims VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
       ?, ?, ?);

--: save
INSERT OR REPLACE INTO claims (name, seq, state, id, token, fence, units, capacity, since, until,
       ttl, patience, keep, kept, delay, flags, client, proof, domain, origin, note)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

--: extend
UPDATE claims SET until = ?3, ttl = ?4 WHERE name = ?1 AND seq = ?2;

--: prolong
-- Proves a claim that was proved before, if it is still held: state 1.
UPDATE claims SET until = max(until, ?5), ttl = ?6
WHERE name = ?1 AND id = ?2 AND token = ?3 AND state = 1 AND until > ?4 AND domain = ?7;

--: drop
DELETE FROM claims WHERE name = ? AND seq = ?;

--: news
SELECT name, seq, state, id, token, fence, units, capacity, since, until, ttl, patience, keep, kept,
       delay, flags, client, proof, domain, origin, note
FROM claims WHERE client = ? AND state > 1 AND state <> 6;

--: names
-- The next names with claims, in order, of those that begin with ?1: ?2 is the
-- first name beyond them, ?3 the last name seen.
SELECT DISTINCT name FROM claims WHERE name > ?3 AND name >= ?1 AND (?2 IS NULL OR name < ?2)
ORDER BY name LIMIT ?4;

--: namesOfClient
-- Names with a row that the client's life file says something about.
SELECT DISTINCT name FROM claims WHERE client = ? AND state IN (1, 2, 5, 6) LIMIT ?;

--: namesOver
-- Names with a row from another clock domain, or whose end has long passed. Asked
-- for seldom: it reads every row.
SELECT DISTINCT name FROM claims WHERE domain <> ? OR until < ? LIMIT ?;

--: getRecord
SELECT value, version, token_name, token, until FROM records WHERE key = ?;

--: putRecord
INSERT OR REPLACE INTO records (key, value, version, token_name, token, until)
VALUES (?, ?, ?, ?, ?, ?);

--: dropRecord
DELETE FROM records WHERE key = ?;

--: recordsOver
SELECT 1 FROM records WHERE until <= ? LIMIT 1;

--: sweepRecords
DELETE FROM records WHERE key IN (SELECT key FROM records WHERE until <= ? LIMIT ?);

--: listRecords
SELECT key, value, version, token_name, token, until FROM records
WHERE key > ?3 AND key >= ?1 AND (?2 IS NULL OR key < ?2) AND until > ?4
ORDER BY key LIMIT ?5;

--: addEvent
INSERT INTO events (at, kind, name, token, fence, units, capacity, took_over, now, note, reason)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING seq;

--: trimEvents
DELETE FROM events WHERE seq <= ?;

--: listEvents
SELECT seq, at, kind, name, token, fence, units, capacity, took_over, now, note, reason
FROM events WHERE seq > ? ORDER BY seq LIMIT ?;
