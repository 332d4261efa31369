package fence

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A Dialect is a kind of SQL.
type Dialect int

// The dialects that SQL speaks.
const (
	Postgres Dialect = iota + 1
	MySQL            // and MariaDB; tables must be InnoDB's
	SQLite           // 3.35 or newer
)

// SQL guards what is in a database, in the caller's own transaction, with a table
// of the newest token of each name in the same database:
//
//	guard := fence.SQL{Dialect: fence.Postgres}
//	...
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	defer tx.Rollback()
//	if err := guard.Check(ctx, tx, lease); err != nil {
//		return err // errors.Is(err, fence.ErrStale): we lost the lock
//	}
//	// read and write in tx
//	return tx.Commit()
//
// Transactions that are checked under one name run one after another: a newer
// token waits until the older's transaction has ended and then sees what it wrote;
// an older token that comes after a newer one is refused. (For a lease table of
// dibs in the same PostgreSQL database pglock.Guard is exact: it needs no table and
// no first contact.)
type SQL struct {
	Dialect Dialect
	Table   string // perhaps with a schema; letters, digits and underscores; "": dibs_fences
}

// A Tx is a transaction; a *sql.Tx is one. A database or a connection is none:
// there the check would be over before the write.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// Check refuses a lease that is older than the newest seen, with a *StaleError;
// else it is the newest from now on, if tx commits. Nobody else passes Check under
// the name until tx has ended.
//
// Call it first of all in tx, also if tx only reads, and roll back on any error.
// In a transaction that began to read before, a database may keep showing what was
// there then (REPEATABLE READ in MySQL), or end it as a conflict (in PostgreSQL, a
// serialization failure; in SQLite, SQLITE_BUSY_SNAPSHOT).
//
// An error that is neither ErrStale nor ErrNoFence is the database's, and wrapped:
// one that says to try the whole transaction again may be obeyed.
func (g SQL) Check(ctx context.Context, tx Tx, lease Fenced) error {
	name, token, err := offered(lease)
	if err != nil {
		return err
	}
	newest, err := g.raise(ctx, tx, name, token)
	if err != nil {
		return err
	}
	return judge(name, token, newest)
}

// Schema returns the statement that creates the table if it isn't there, for
// migrations.
func (g SQL) Schema() (string, error) {
	create, _, err := g.statements()
	return create, err
}

// Create creates the table if it isn't there. db is a *sql.DB, or a transaction.
// Any number of instances may call it at their start, on a database.
func (g SQL) Create(ctx context.Context, db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
},
) error {
	create, _, err := g.statements()
	if err != nil {
		return err
	}
	if _, err = db.ExecContext(ctx, create); err != nil {
		// Of several at once PostgreSQL fails all but one, IF NOT EXISTS or not (a
		// unique violation in its catalog), when that one has committed.
		_, err = db.ExecContext(ctx, create)
	}
	if err != nil {
		return fmt.Errorf("fence: create the table %s: %w", g.table(), err)
	}
	return nil
}

// Store returns a [Store] in db, for a [Gate] that several servers share.
func (g SQL) Store(db *sql.DB) Store { return sqlStore{g, db} }

type sqlStore struct {
	SQL
	db *sql.DB
}

func (s sqlStore) Raise(ctx context.Context, name string, token uint64) (newest uint64, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("fence of %q: %w", name, err)
	}
	defer tx.Rollback()
	newest, err = s.raise(ctx, tx, name, token)
	if err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("fence of %q: %w", name, err)
	}
	return newest, nil
}

func (g SQL) raise(ctx context.Context, tx Tx, name string, token uint64) (newest uint64, err error) {
	_, raise, err := g.statements()
	if err != nil {
		return 0, err
	}
	if g.Dialect == MySQL {
		newest, err = raiseMySQL(ctx, tx, raise, name, token)
	} else {
		err = tx.QueryRowContext(ctx, raise, name, int64(token)).Scan(&newest)
	}
	if err != nil {
		return 0, fmt.Errorf("fence of %q: %w", name, err)
	}
	return newest, nil
}

// raiseMySQL reads the newest token where MySQL, which has no RETURNING, leaves it:
// in the id that the row was inserted under, which is 0 for a new row of a table
// without AUTO_INCREMENT.
func raiseMySQL(ctx context.Context, tx Tx, raise, name string, token uint64) (uint64, error) {
	done, err := tx.ExecContext(ctx, raise, name, int64(token), int64(token))
	if err != nil {
		return 0, err
	}
	newest, err := done.LastInsertId()
	if err == nil && newest == 0 {
		newest = int64(token)
	}
	return uint64(newest), err
}

// A dialect's file has two statements with an empty line between: the table, and
// the step that raises and tells the newest.
var (
	//go:embed postgres.sql
	postgresSQL string
	//go:embed mysql.sql
	mysqlSQL string
	//go:embed sqlite.sql
	sqliteSQL string
)

var dialects = map[Dialect]string{Postgres: postgresSQL, MySQL: mysqlSQL, SQLite: sqliteSQL}

var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

func (g SQL) table() string {
	if g.Table == "" {
		return "dibs_fences"
	}
	return g.Table
}

func (g SQL) statements() (create, raise string, err error) {
	text, ok := dialects[g.Dialect]
	switch {
	case !ok:
		return "", "", errors.New("fence: SQL has no dialect: set Dialect to Postgres, MySQL or SQLite")
	case !tableName.MatchString(g.table()):
		return "", "", fmt.Errorf("fence: %q is no name of a table: letters, digits and underscores, perhaps after a schema and a dot", g.Table)
	}
	create, raise, _ = strings.Cut(strings.TrimSpace(strings.ReplaceAll(text, "@", g.table())), "\n\n")
	return create, raise, nil
}
