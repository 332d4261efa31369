package mutants_test

import "slices"

// postgresMutants break package pglock. They run on a real server, and only if they
// are asked for: DIBS_MUTANTS=postgres, or all.
var postgresMutants = slices.Concat(shedlockMutants, advisoryMutants)

const (
	pglockPkg     = "./pglock"
	onShedlock    = "^TestConformanceOfTheShedlockLayout$/^laws$/"
	onAdvisory    = "^TestConformanceOfAdvisoryLocks$/^laws$/"
	shedlockRowGo = "pglock/shedlock_row.go"
	pgRoundGo     = "pglock/round.go"
	pgRevokeGo    = "pglock/revoke.go"
)

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
}
