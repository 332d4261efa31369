package main

import (
	"context"
	"database/sql"
	"path/filepath"
	"time"

	_ "github.com/dibslock/dibs/sqlitelock" // sqlite://
	_ "modernc.org/sqlite"                  // the floor's driver
)

var dibsOnSQLite = dibsOn("SQLite", "sqlite://%s/dibs.db")

var sqlite = store{
	name: "SQLite",
	about: "The floor is a bare upsert and delete by the same driver, on a file of its own beside ours, in WAL with synchronous=FULL. " +
		"Its two commits are fsynced; of dibs' two the grant's, since a release that a power cut undoes lets nobody in.",
	start: func(dir string) (server, error) { return folder(dir), nil },
	contests: []contest{
		{"lock and unlock, uncontended", "time ≤ 1.3x", race{1, 1, false}, []player{sqliteFloor, dibsOnSQLite}},
		{"64 goroutines, each on its own name", "grants ≥ 0.9x", race{1, 64, false}, []player{sqliteFloor, dibsOnSQLite}},
	},
}

// A folder is a store without a server. The files stay from turn to turn, as
// they do in real life.
type folder string

func (f folder) where() string        { return string(f) }
func (f folder) load() (load, error)  { return load{}, nil }
func (f folder) claims() (int, error) { return 0, nil }
func (f folder) wipe() error          { return nil }
func (f folder) stop() error          { return nil }

var sqliteFloor = player{name: "floor: upsert, delete", open: openSQLiteFloor}

type sqliteClient struct {
	db             *sql.DB
	upsert, remove *sql.Stmt
}

type sqliteLease struct {
	s    *sqliteClient
	name string
}

func openSQLiteFloor(ctx context.Context, where string, _ time.Duration) (client, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(where, "floor.db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous(full)&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, err
	}
	// One connection: with more the floor's writers fight for the file's lock.
	db.SetMaxOpenConns(1)
	const schema = "CREATE TABLE IF NOT EXISTS locks (name TEXT PRIMARY KEY, id TEXT, token INTEGER, ends INTEGER) WITHOUT ROWID"
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	s := &sqliteClient{db: db}
	s.upsert, err = db.PrepareContext(ctx, `INSERT INTO locks VALUES (?1, ?2, 1, ?3)
		ON CONFLICT (name) DO UPDATE SET id = excluded.id, token = token + 1, ends = excluded.ends WHERE locks.ends < ?3`)
	if err != nil {
		return nil, err
	}
	s.remove, err = db.PrepareContext(ctx, "DELETE FROM locks WHERE name = ?1 AND id = ?2")
	return s, err
}

const sqliteID = "4e1243bd22c66e76c2ba9eddc1f91394"

func (s *sqliteClient) lock(ctx context.Context, name string) (lease, error) {
	if _, err := s.upsert.ExecContext(ctx, name, sqliteID, 1); err != nil {
		return nil, err
	}
	return &sqliteLease{s, name}, nil
}

func (l *sqliteLease) Release(ctx context.Context) error {
	_, err := l.s.remove.ExecContext(ctx, l.name, sqliteID)
	return err
}

func (s *sqliteClient) Close() error { return s.db.Close() }
