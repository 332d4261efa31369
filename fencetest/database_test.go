package fencetest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"github.com/dibslock/dibs/fence"
	"github.com/dibslock/dibs/internal/servers"
)

// A kind is a kind of database.
type kind struct {
	name    string
	dialect fence.Dialect
	driver  string
	levels  []sql.IsolationLevel
	// fresh makes a database of the test's own and returns its data source.
	fresh func(t *testing.T) string
}

var kinds = []kind{
	{
		name: "postgres", dialect: fence.Postgres, driver: "pgx",
		levels: []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		fresh: func(t *testing.T) string {
			p, name := servers.SharedPostgres(t), freshName()
			_, err := p.Query("postgres", "CREATE DATABASE "+name)
			must(t, err)
			return p.URL(name)
		},
	},
	{
		name: "mariadb", dialect: fence.MySQL, driver: "mysql",
		levels: []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		fresh: func(t *testing.T) string {
			m, name := servers.SharedMariaDB(t), freshName()
			admin, err := sql.Open("mysql", m.DSN(""))
			must(t, err)
			defer admin.Close()
			_, err = admin.Exec("CREATE DATABASE " + name)
			must(t, err)
			return m.DSN(name)
		},
	},
	{
		name: "sqlite", dialect: fence.SQLite, driver: "sqlite",
		levels: []sql.IsolationLevel{sql.LevelDefault},
		fresh: func(t *testing.T) string {
			return "file:" + filepath.Join(t.TempDir(), "data.db") + "?_pragma=busy_timeout(20000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)"
		},
	},
}

var names atomic.Int64

func freshName() string { return fmt.Sprintf("t%d", names.Add(1)) }

// schema is what the tests write to: accounts, and in which order they were
// written under which token.
func (k kind) schema() []string {
	serial := map[fence.Dialect]string{
		fence.Postgres: "bigserial PRIMARY KEY",
		fence.MySQL:    "BIGINT AUTO_INCREMENT PRIMARY KEY",
		fence.SQLite:   "INTEGER PRIMARY KEY AUTOINCREMENT",
	}[k.dialect]
	return []string{
		"CREATE TABLE accounts (name VARCHAR(100) PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL)",
		"CREATE TABLE writes (seq " + serial + ", name VARCHAR(100) NOT NULL, token BIGINT NOT NULL)",
	}
}

// open opens a database of the test's own, with its tables.
func (k kind) open(t *testing.T) (*sql.DB, fence.SQL) {
	t.Helper()
	db := k.dial(t, k.fresh(t))
	for _, create := range k.schema() {
		_, err := db.Exec(create)
		must(t, err)
	}
	guard := fence.SQL{Dialect: k.dialect}
	must(t, guard.Create(t.Context(), db))
	must(t, guard.Create(t.Context(), db)) // again is harmless
	return db, guard
}

func (k kind) dial(t *testing.T, source string) *sql.DB {
	t.Helper()
	db, err := sql.Open(k.driver, source)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// q writes a statement with ? as the dialect does.
func (k kind) q(query string) string {
	if k.dialect != fence.Postgres {
		return query
	}
	for i := 1; strings.Contains(query, "?"); i++ {
		query = strings.Replace(query, "?", fmt.Sprintf("$%d", i), 1)
	}
	return query
}

// conflict tells whether the database asks to try the transaction again.
func conflict(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "40001" || pg.Code == "40P01"
	}
	if my, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return my.Number == 1213 || my.Number == 1020
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		return lite.Code()&0xff == 5 // SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT
	}
	return false
}
