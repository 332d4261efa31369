// Command transaction puts a lock around a database transaction: begin after the
// lock is had, commit before it is let go, and check the fence inside.
//
// The usual mistake is the other way round: a lock taken inside a transaction shows
// what was there when the transaction began, and one that is released before the
// commit lets the next one read the old state.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/examples/internal/app"
)

var (
	database = flag.String("db", "app.db", "postgres://... or a SQLite `file`")
	times    = flag.Int("times", 10, "how often to count")
)

func main() { app.Main(run) }

func run(ctx context.Context, c *dibs.Client) error {
	db, err := app.OpenDB(*database)
	if err != nil {
		return err
	}
	defer db.Close()
	counter := c.Mutex("counter")
	for range *times {
		if err := locked(ctx, counter, func(ctx context.Context, lease *dibs.Lease) error { return count(ctx, db, lease) }); err != nil {
			return err
		}
	}
	fmt.Println("counted", *times)
	return nil
}

// locked runs fn under the lock. fn's transaction has ended, one way or the other,
// when the lock is let go.
func locked(ctx context.Context, l *dibs.Locker, fn func(ctx context.Context, lease *dibs.Lease) error) error {
	lease, err := l.Lock(ctx)
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	bound, stop := lease.Bind(ctx) // a loss rolls the transaction back
	defer stop()
	return fn(bound, lease)
}

// count reads a number and writes it back plus one, as programs do that compute
// something in between.
func count(ctx context.Context, db *app.DB, lease *dibs.Lease) error {
	if err := db.Fence.Create(ctx, db); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS counters (name VARCHAR(20) PRIMARY KEY, n BIGINT NOT NULL)"); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := db.Fence.Check(ctx, tx, lease); err != nil {
		return err
	}
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT coalesce(max(n), 0) FROM counters WHERE name = 'visits'").Scan(&n); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM counters WHERE name = 'visits'"); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, db.Q("INSERT INTO counters (name, n) VALUES ('visits', ?)"), n+1); err != nil {
		return err
	}
	return tx.Commit()
}
