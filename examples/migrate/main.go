// Command migrate is the start of a web server of which three instances are deployed
// at once: one of them brings the database's schema up to date, the others wait for
// that, and then all serve.
//
// Each step is a transaction of its own that checks the lock's fence first, so an
// instance that froze in the middle can't run its step after another took over.
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/examples/internal/app"
)

var database = flag.String("db", "app.db", "the database to migrate: postgres://... or a SQLite `file`")

// migrations are the steps, in order. Only ever append.
var migrations = []string{
	"CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
	"ALTER TABLE customers ADD COLUMN email TEXT",
	"CREATE TABLE invoices (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers, cents BIGINT NOT NULL)",
	"CREATE INDEX invoices_customer ON invoices (customer)",
}

func main() { app.Main(run) }

func run(ctx context.Context, c *dibs.Client) error {
	db, err := app.OpenDB(*database)
	if err != nil {
		return err
	}
	defer db.Close()
	lease, err := c.Mutex("migrate").Lock(ctx)
	if err != nil {
		return err
	}
	applied, err := migrate(ctx, db, lease)
	if released := lease.Release(ctx); err == nil {
		err = released
	}
	if err != nil {
		return err
	}
	fmt.Printf("applied %d, the schema is at version %d: serving\n", applied, len(migrations))
	return nil
}

// migrate applies what is missing.
func migrate(ctx context.Context, db *app.DB, lease *dibs.Lease) (applied int, err error) {
	ctx, stop := lease.Bind(ctx) // a loss ends the statement under way
	defer stop()
	if err := db.Fence.Create(ctx, db); err != nil {
		return 0, err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY)"); err != nil {
		return 0, err
	}
	for version := 1; version <= len(migrations); version++ {
		did, err := step(ctx, db, lease, version)
		if err != nil {
			return applied, fmt.Errorf("migration %d: %w", version, err)
		}
		if did {
			applied++
		}
	}
	return applied, nil
}

// step applies one migration unless it was applied before.
func step(ctx context.Context, db *app.DB, lease *dibs.Lease, version int) (did bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback()
	if err := db.Fence.Check(ctx, tx, lease); err != nil {
		return false, err
	}
	var found int
	switch err := tx.QueryRowContext(ctx, db.Q("SELECT version FROM schema_version WHERE version = ?"), version).Scan(&found); err {
	case nil:
		return false, nil
	case sql.ErrNoRows:
	default:
		return false, err
	}
	if _, err := tx.ExecContext(ctx, migrations[version-1]); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, db.Q("INSERT INTO schema_version (version) VALUES (?)"), version); err != nil {
		return false, err
	}
	return true, tx.Commit()
}
