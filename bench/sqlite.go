package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"

	"github.com/dibslock/dibs"
	_ "github.com/dibslock/dibs/sqlitelock" // sqlite://
	_ "modernc.org/sqlite"                  // the floor's driver
)

// sqliteCases compares locks in SQLite with a bare upsert and delete in WAL with
// synchronous=FULL. The floor's two commits are fsynced; of dibs' two the grant's,
// since a release that a power cut undoes lets nobody in: see sqlitelock/lazy.go.
func sqliteCases(ctx context.Context, dir string) (cases []comparison, done func() error, err error) {
	raw, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "floor.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, nil, err
	}
	// One connection: with more the floor's writers fight for the file's lock.
	raw.SetMaxOpenConns(1)
	const schema = "CREATE TABLE locks (name TEXT PRIMARY KEY, id TEXT, token INTEGER, ends INTEGER) WITHOUT ROWID"
	if _, err := raw.ExecContext(ctx, schema); err != nil {
		return nil, nil, err
	}
	upsert, err := raw.PrepareContext(ctx, `INSERT INTO locks VALUES (?1, ?2, 1, ?3)
		ON CONFLICT (name) DO UPDATE SET id = excluded.id, token = token + 1, ends = excluded.ends WHERE locks.ends < ?3`)
	if err != nil {
		return nil, nil, err
	}
	remove, err := raw.PrepareContext(ctx, "DELETE FROM locks WHERE name = ?1 AND id = ?2")
	if err != nil {
		return nil, nil, err
	}
	client, err := dibs.Open(ctx, "sqlite://"+filepath.Join(dir, "dibs.db"), nil)
	if err != nil {
		return nil, nil, err
	}
	floor := func(ctx context.Context, w int) error {
		name := fmt.Sprintf("job-%d", w)
		if _, err := upsert.ExecContext(ctx, name, "4e1243bd22c66e76c2ba9eddc1f91394", 1); err != nil {
			return err
		}
		_, err := remove.ExecContext(ctx, name, "4e1243bd22c66e76c2ba9eddc1f91394")
		return err
	}
	lock := func(ctx context.Context, w int) error {
		lease, err := client.Mutex(fmt.Sprintf("job-%d", w)).Lock(ctx)
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	cases = []comparison{
		{name: "SQLite: lock and unlock, uncontended", workers: 1, bar: "time ≤ 1.3x", floor: floor, dibs: lock},
		{name: "SQLite: 64 goroutines, each on its own name", workers: 64, bar: "operations ≥ 0.9x", floor: floor, dibs: lock},
	}
	return cases, func() error {
		if err := client.Close(ctx); err != nil {
			return err
		}
		return raw.Close()
	}, nil
}
