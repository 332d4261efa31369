// Package pglock keeps locks in PostgreSQL, in three ways.
//
// postgres:// is a lease table ([Table]): leases by the server's clock, a line with
// hand-over, records and a journal, safe behind any connection pooler.
//
// postgres://…?layout=shedlock is the table of ShedLock ([Shedlock]), whose locks
// are shared with the programs that use that.
//
// pgadvisory:// are PostgreSQL's advisory locks ([Advisory]): many locks on few
// sessions that never block, shared with other programs, gone with the session.
//
// Beside them stand [TryXact], [Xact] and [InXact], which lock a name for one
// transaction, [Guard], which makes a lease of the table exact for what a
// transaction does, and [OnceTx].
//
// The files of the table: table.go is the store, and call.go what it does that is not
// about one name; desk.go takes what callers ask and gives it to writers; short.go is
// what is usual, in one statement, and renew.go the renewals; writer.go reads names,
// has steps worked out and writes them, with the rows of writer_rows.go; name.go,
// judge.go, prove.go and row.go are the rules; ear.go, news.go and watch.go are how
// clients hear of each other. shedlock.go is ShedLock's table by the same rules,
// shedlock_row.go what a row of it says, and shedlock_table.go which table it is. Of
// the advisory locks: advisory.go is the store, advisory_watch.go tells its waiters;
// warden.go owns a session, which warden_session.go makes and ends, with the locks of
// held.go; round.go decides what is asked in one round trip, and trip.go makes it;
// key.go makes keys; inquiry.go asks who holds and has them let go, and clerk.go and
// revoke.go are the side that is asked. All stand on session.go, and the locks on
// exchange.go, which a caller uses on its own goroutine. The SQL is in the .sql files.
//
// docs/stores/postgres.md says what is promised, and what can go wrong.
package pglock
