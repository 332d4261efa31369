package mutants_test

import "slices"

// postgresMutants break package pglock. They run on a real server, and only if they
// are asked for: DIBS_MUTANTS=postgres, or all.
var postgresMutants = slices.Concat(tableMutants, shedlockMutants, advisoryMutants)

const (
	pglockPkg     = "./pglock"
	onShedlock    = "^TestConformanceOfTheShedlockLayout$/^laws$/"
	onAdvisory    = "^TestConformanceOfAdvisoryLocks$/^laws$/"
	statementsSQL = "pglock/statements.sql"
	shedlockRowGo = "pglock/shedlock_row.go"
	advisorySQL   = "pglock/advisory.sql"
	pgShortGo     = "pglock/short.go"
	pgRoundGo     = "pglock/round.go"
	pgRevokeGo    = "pglock/revoke.go"
)

// tableMutants break the lease table's operations in one statement. Those that work
// out a step in Go have the reference store's rules, and its mutants.
var tableMutants = []mutant{
	{
		law: 1, what: "postgres, table: the short take ignores who holds the name", pkg: pglockPkg,
		edit: edit{statementsSQL, "WHERE n.name = $1 AND n.state = 0 AND n.others = 0\n", "WHERE n.name = $1 AND n.others = 0\n"},
	},
	{
		law: 1, what: "postgres, table: the short take looks at the name's own row alone", pkg: pglockPkg,
		edit: edit{statementsSQL, "WHERE n.name = $1 AND n.state = 0 AND n.others = 0\n", "WHERE n.name = $1 AND n.state = 0\n"},
	},
	{
		law: 1, what: "postgres, table: the short release frees a name that a transaction relies on", pkg: pglockPkg,
		edit: edit{statementsSQL, "FOR UPDATE SKIP LOCKED -- a guarded row is skipped", "FOR NO KEY UPDATE SKIP LOCKED"},
		run:  "^TestReleaseBeforeTheCommitKeepsTheNameClosed$",
	},
	{
		law: 1, what: "postgres, table: the short hand-over passes on a name that a transaction relies on", pkg: pglockPkg,
		edit: edit{statementsSQL, "FOR UPDATE OF n SKIP LOCKED\n), u AS", "FOR NO KEY UPDATE OF n SKIP LOCKED\n), u AS"},
		run:  "^TestReleaseBeforeTheCommitKeepsTheNameClosed$",
	},
	{
		law: 1, what: "postgres, table: a claim of the short take ends before its holder's trust", pkg: pglockPkg,
		edit: edit{statementsSQL, "until = t.now + $7::int8, ttl = $7::int8, keep", "until = t.now + $7::int8 / 2, ttl = $7::int8, keep"},
		run:  "^TestShortcutsWriteWhatTheLongWayWrites$",
	},
	{
		law: 5, what: "postgres, table: what was written counts though its commit fails", pkg: pglockPkg,
		edit: edit{"pglock/writer.go", "return nil, err // also if rows", "return written, err // also if rows"},
		run:  "^TestBusyQueueOfNotificationsGrantsNothing$",
	},
	{
		law: 11, what: "postgres, table: the short take does not count its token", pkg: pglockPkg,
		edit: edit{statementsSQL, "last = n.last + 1, took_over = false", "last = n.last, took_over = false"},
	},
	{
		law: 11, what: "postgres, table: the short hand-over does not count its token", pkg: pglockPkg,
		edit: edit{statementsSQL, "last = h.next, took_over = false", "last = n.last, took_over = false"},
	},
	{
		law: 12, what: "postgres, table: a reader's short take begins no generation", pkg: pglockPkg,
		edit: edit{statementsSQL, "readers = CASE WHEN $2::bool THEN n.last + 1 ELSE n.readers END", "readers = n.readers"},
	},
	{
		law: 14, what: "postgres, table: the short renewal revives", pkg: pglockPkg,
		edit: edit{statementsSQL, "WHERE n.state = 1 AND n.until > (SELECT now FROM t)\n", "WHERE n.state = 1\n"},
	},
	{
		law: 18, what: "postgres, table: the short release forgets Keep", pkg: pglockPkg,
		edit: edit{pgShortGo, "c.Token == 0 || c.Keep > 0", "c.Token == 0"},
	},
	{
		law: 18, what: "postgres, table: the short hand-over forgets Keep", pkg: pglockPkg,
		edit: edit{statementsSQL, "keep = h.keep, heard = h.heard", "keep = 0, heard = h.heard"},
		run:  "^TestShortcutsWriteWhatTheLongWayWrites$",
	},
	{
		law: 19, what: "postgres, table: the short release compares the name alone", pkg: pglockPkg,
		edit: edit{statementsSQL, "n.id = $2::bytea AND n.token = $3::int8 AND n.state BETWEEN 1 AND 2 AND n.others = 0", "($2::bytea IS NULL OR $3::int8 > 0) AND n.state BETWEEN 1 AND 2 AND n.others = 0"},
	},
	{
		law: 19, what: "postgres, table: the short hand-over compares the name alone", pkg: pglockPkg,
		edit: edit{statementsSQL, "n.id = $2::bytea AND n.token = $3::int8 AND n.state BETWEEN 1 AND 2 AND n.until", "($2::bytea IS NULL OR $3::int8 > 0) AND n.state BETWEEN 1 AND 2 AND n.until"},
	},
	{
		law: 19, what: "postgres, table: the short release gives back what has ended", pkg: pglockPkg,
		edit: edit{statementsSQL, "AND n.others = 0\n      AND n.until > (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint\n", "AND n.others = 0\n"},
	},
	{
		law: 25, what: "postgres, table: the short release leaves the line standing", pkg: pglockPkg,
		edit: edit{statementsSQL, "AND n.state BETWEEN 1 AND 2 AND n.others = 0\n", "AND n.state BETWEEN 1 AND 2\n"},
	},
	{
		law: 25, what: "postgres, table: the short hand-over lets one reader in", pkg: pglockPkg,
		edit: edit{statementsSQL, "AND c.units = c.capacity AND c.until > t.now", "AND c.until > t.now"},
	},
	{
		law: 25, what: "postgres, table: what is handed over lives as long as the place", pkg: pglockPkg,
		edit: edit{statementsSQL, "least(t.now + $5::int8, c.until)", "greatest(t.now + $5::int8, c.until)"},
	},
	{
		law: 26, what: "postgres, table: the short hand-over is to the dead", pkg: pglockPkg,
		edit: edit{statementsSQL, "AND c.units = c.capacity AND c.until > t.now", "AND c.units = c.capacity"},
		run:  "^TestConformance$/^laws$/^L26_DeadPlacesAreSkipped$/^ByTheReleaseItself$",
	},
	{
		law: 29, what: "postgres, table: the short hand-over is told before its commit", pkg: pglockPkg,
		edit: edit{pgShortGo, "x, next, err = decodeNews(string(row[0]))\n", "x, next, err = decodeNews(string(row[0]))\n\t\t\tt.subs.tell(next, x)\n"},
		run:  "^TestBusyQueueOfNotificationsHandsNothingOn$",
	},
	{
		law: 49, what: "postgres, table: the short take forgets Delay", pkg: pglockPkg,
		edit: edit{statementsSQL, "delay = $9::int8, died = false, by_force = n.took_over", "delay = 0 * $9::int8, died = false, by_force = n.took_over"},
		run:  "^TestShortcutsWriteWhatTheLongWayWrites$",
	},
}

var shedlockMutants = []mutant{
	{
		law: 1, what: "postgres, shedlock: another program's lock is not looked at", pkg: pglockPkg,
		edit: edit{shedlockRowGo, "\tclosed := x.until > x.now\n", "\tclosed := x.until > x.now && r != nil\n"},
		run:  "^TestShedlockExcludesUsAndWeIt$",
	},
	{
		law: 1, what: "postgres, shedlock: a row is written whatever became of it", pkg: pglockPkg,
		edit: edit{"pglock/shedlock.sql", "WHERE t.xmin::text = i.x", "WHERE i.x IS NOT NULL"},
		run:  "^TestShedlockRowThatChanged$",
	},
	{
		law: 11, what: "postgres, shedlock: the token is the moment alone", pkg: pglockPkg,
		edit: edit{shedlockRowGo, "last: ceil(max(x.now, x.at+1), unit) - 1", "last: x.now / 1000000"},
		run:  "^TestShedlockTables$",
	},
	{
		law: 15, what: "postgres, shedlock: a row in somebody's hand is in everybody's way", pkg: pglockPkg,
		edit: edit{"pglock/shedlock.sql", "FOR NO KEY UPDATE OF t SKIP LOCKED", "FOR NO KEY UPDATE OF t"},
		run:  "^TestShedlockRowInHand$",
	},
	{
		law: 17, what: "postgres, shedlock: a release leaves lock_until", pkg: pglockPkg,
		edit: edit{shedlockRowGo, `x.until, x.by = n.now-n.now%unit, "dibs free"`, `x.by = "dibs free"`},
		run:  "^TestShedlockExcludesUsAndWeIt$",
	},
	{
		law: 18, what: "postgres, shedlock: lock_until is the end of the claim alone", pkg: pglockPkg,
		edit: edit{shedlockRowGo, "x.until, x.at, x.by = ceil(r.gone(), unit)", "x.until, x.at, x.by = ceil(r.Until, unit)"},
		run:  onShedlock + "^L18_",
	},
	{
		law: 19, what: "postgres, shedlock: a claim is known by its host", pkg: pglockPkg,
		edit: edit{shedlockRowGo, "\t\t\td := digestOf(*id)\n", "\t\t\td := digestOf(\"host\")\n"},
		run:  onShedlock + "^L19_",
	},
	{
		law: 22, what: "postgres, shedlock: another program's lock is taken away", pkg: pglockPkg,
		edit: edit{"pglock/shedlock.go", "h := n.granted(stranger); h != nil && ", "h := n.granted(stranger); h == nil && "},
		run:  "^TestShedlockExcludesUsAndWeIt$",
	},
}

var advisoryMutants = []mutant{
	{
		law: 3, what: "postgres, advisory: a repeat is refused", pkg: pglockPkg,
		edit: edit{pgRoundGo, "\tcase c != nil: // asked again", "\tcase false: // asked again"},
		run:  onAdvisory + "^L3_",
	},
	{
		law: 11, what: "postgres, advisory: the try for a known key draws no token", pkg: pglockPkg,
		edit: edit{advisorySQL, "SET v = greatest(pg_catalog.nextval('@.tokens'::regclass), f.v + 2)\n    FROM t", "SET v = f.v\n    FROM t"},
		run:  onAdvisory + "^L11_",
	},
	{
		law: 15, what: "postgres, advisory: a release that can't be told ends all claims", pkg: pglockPkg,
		edit: edit{"pglock/trip.go", "if back < len(keys) {", "if back <= len(keys) {"},
		run:  "^TestBusyQueueOfNotificationsEndsNoSession$",
	},
	{
		law: 19, what: "postgres, advisory: an unlock does not compare the token", pkg: pglockPkg,
		edit: edit{pgRoundGo, "\tif c == nil || q.claim.Token != 0 && q.claim.Token != c.Token {", "\tif c == nil {"},
		run:  onAdvisory + "^L19_",
	},
	{
		law: 22, what: "postgres, advisory: what is revoked is renewed", pkg: pglockPkg,
		edit: edit{pgRoundGo, "\tcase c.revoked():\n\t\treturn result{err: driver.ErrRevoked}\n", ""},
		run:  onAdvisory + "^L22_",
	},
	{
		law: 22, what: "postgres, advisory: revokes whoever holds the name", pkg: pglockPkg,
		edit: edit{pgRevokeGo, "\t\t\tcase o.Token == q.claim.Token:", "\t\t\tcase o.Token != 0:"},
		run:  "^TestAdvisoryRevokeNow$",
	},
	{
		law: 22, what: "postgres, advisory: anybody may revoke", pkg: pglockPkg,
		edit: edit{"pglock/clerk.go", "\tcase !ok:\n", "\tcase !ok && false:\n"},
		run:  "^TestAdvisoryAskersNeedRights$",
	},
	{
		law: 28, what: "postgres, advisory: a release tells nobody", pkg: pglockPkg,
		edit: edit{advisorySQL, "CASE WHEN NOT pg_catalog.pg_try_advisory_xact_lock($4) THEN", "CASE WHEN $4::int8 IS NULL THEN"},
		run:  "^TestReleaseTellsIfSomebodyWaits$", hangs: true,
	},
}
