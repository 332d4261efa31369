// Package sqlitelock is the embedded store of dibs: one SQLite file that all
// processes of a host share. It keeps every law, and has every optional power.
//
//	client, err := dibs.Open(ctx, "sqlite:///var/lib/app/locks.db", nil)
//
// How it is built, from the ground up: a conn is one SQLite connection; a view is
// what a connection knows of the file; a desk is the goroutine that owns a
// connection and runs many callers' operations in one transaction; a name is the
// state machine of the laws, which knows nothing of SQL. Beside them stand the
// life file, which proves a death, and the lookout, which wakes waiters.
//
// docs/stores/sqlite.md says what the store promises and what can go wrong.
package sqlitelock
