package fence

import (
	"context"
	"errors"
	"fmt"
)

// A Row is a row of a result, such as a pgx.Row.
type Row interface{ Scan(dest ...any) error }

// A PgxTx is a transaction of pgx, whose rows are R: a pgx.Tx or a *pgxpool.Tx is
// one.
type PgxTx[R Row] interface {
	QueryRow(ctx context.Context, query string, args ...any) R
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
}

// CheckPgx is [SQL.Check] in a transaction of pgx:
//
//	err := fence.CheckPgx(ctx, guard, tx, lease)
func CheckPgx[R Row](ctx context.Context, g SQL, tx PgxTx[R], lease Fenced) error {
	name, token, err := offered(lease)
	if err != nil {
		return err
	}
	_, raise, err := g.statements()
	if err != nil {
		return err
	}
	if g.Dialect != Postgres {
		return errors.New("fence: pgx speaks to PostgreSQL: set Dialect to Postgres")
	}
	var newest int64
	if err := tx.QueryRow(ctx, raise, name, int64(token)).Scan(&newest); err != nil {
		return fmt.Errorf("fence of %q: %w", name, err)
	}
	return judge(name, token, uint64(newest))
}
