package app

import (
	"database/sql"
	"fmt"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"             // the driver sqlite

	"github.com/dibslock/dibs/fence"
)

// A DB is the user's database, which has nothing to do with the store of locks.
type DB struct {
	*sql.DB
	Fence fence.SQL // guards what is in it
}

// OpenDB opens postgres://..., or else a SQLite file.
func OpenDB(url string) (*DB, error) {
	if strings.HasPrefix(url, "postgres") {
		db, err := sql.Open("pgx", url)
		return &DB{db, fence.SQL{Dialect: fence.Postgres}}, err
	}
	db, err := sql.Open("sqlite", "file:"+url+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
	return &DB{db, fence.SQL{Dialect: fence.SQLite}}, err
}

// Q writes a query with ? as the database wants it.
func (d *DB) Q(query string) string {
	if d.Fence.Dialect != fence.Postgres {
		return query
	}
	for n := 1; strings.Contains(query, "?"); n++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", n), 1)
	}
	return query
}
