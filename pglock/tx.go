package pglock

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A Tx is a transaction of the caller's: a pgx.Tx, or what [SQL] makes of a
// *sql.Tx. A connection or a pool is none: what is locked on it for a transaction
// is free again at once.
type Tx interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// SQL makes a Tx of a transaction of database/sql, with whatever driver.
func SQL(tx *sql.Tx) Tx { return sqlTx{tx} }

type sqlTx struct{ tx *sql.Tx }

func (t sqlTx) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	_, err := t.tx.ExecContext(ctx, query, args...)
	return pgconn.CommandTag{}, err
}

func (t sqlTx) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	return t.tx.QueryRowContext(ctx, query, args...)
}

func (t sqlTx) Commit(context.Context) error { return t.tx.Commit() }

func (t sqlTx) Rollback(context.Context) error { return t.tx.Rollback() }

// sqlState is the SQLSTATE of err, of whatever driver, or "".
func sqlState(err error) string {
	if c := code(err); c != "" {
		return c
	}
	type stater interface{ SQLState() string }
	for err != nil {
		if s, ok := err.(stater); ok {
			return s.SQLState()
		}
		u, ok := err.(interface{ Unwrap() error })
		if !ok {
			return ""
		}
		err = u.Unwrap()
	}
	return ""
}
