package pglock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/dibslock/dibs/driver"
)

// Fenced is a lease as a guard sees it: a *dibs.Lease is one.
type Fenced interface {
	Name() string
	Fence() uint64
}

// Guard has tx rely on a lease of the lease table in the same database and the
// schema dibs. If it returns nil, nobody is granted the name before tx has ended:
// not when the lease's TTL ends, not when it is released or taken away. What tx
// does is done under the lease, whatever happens to its holder. The lease can be
// renewed meanwhile, and others can ask for it. A *driver.NotHeldError means that
// the lease has ended; tx can go on without it.
//
// A holder that freezes in the middle would keep the name closed, so the server
// ends tx if it is idle for longer than the lease is trusted now
// (idle_in_transaction_session_timeout, or what is set, if that is shorter).
//
// Call it before the first write, and above READ COMMITTED first of all: a lease
// that has ended since the transaction's first statement is a serialization failure
// there (40001), and one that was renewed since is trusted no longer than before. In
// a savepoint (a nested pgx.Tx) it ends if that is rolled back.
func Guard(ctx context.Context, tx Tx, lease Fenced) error { return guard(ctx, tx, lease, dibsSQL) }

// Guard is [Guard] in the store's own schema.
func (t *Table) Guard(ctx context.Context, tx Tx, lease Fenced) error {
	return guard(ctx, tx, lease, t.sql)
}

// OnceTx notes in tx, in the schema dibs, that key was done, and tells whether this
// is the first time. Two transactions at once with the same key: the second waits
// for the end of the first, and is the first if that was rolled back; if it was
// committed, a second one above READ COMMITTED fails (40001) and has to be run again.
// Keys are kept for ever; the table once has a column by which old ones can be deleted.
func OnceTx(ctx context.Context, tx Tx, key string) (first bool, err error) {
	return onceTx(ctx, tx, key, dibsSQL)
}

// OnceTx is [OnceTx] in the store's own schema.
func (t *Table) OnceTx(ctx context.Context, tx Tx, key string) (first bool, err error) {
	return onceTx(ctx, tx, key, t.sql)
}

// dibsSQL are the statements in the schema that is used by default.
var dibsSQL = parseStatements(statementsSQL, `"dibs"`)

func guard(ctx context.Context, tx Tx, lease Fenced, stmts statements) error {
	name, fence := lease.Name(), lease.Fence()
	if fence == 0 {
		return driver.Rejectedf(name, "the lease has no fence to guard with")
	}
	var micros int64
	err := tx.QueryRow(ctx, stmts.named("guard"), name, int64(fence)).Scan(&micros)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return &driver.NotHeldError{Name: name}
	case err != nil:
		return guardFailed(name, err)
	}
	idle := max(span(micros).Milliseconds(), 1)
	if err := tx.QueryRow(ctx, xact.named("idle"), idle).Scan(new(string)); err != nil {
		return guardFailed(name, err)
	}
	return nil
}

// guardFailed says what an error of a guard means. The transaction can't go on.
func guardFailed(name string, err error) error {
	why := ""
	switch sqlState(err) {
	case codeReadOnly:
		why = "the transaction is read only, and a guard locks a row: begin it READ WRITE: "
	case codeAborted:
		why = "an earlier statement of the transaction failed, so it has to be rolled back: "
	case codeSerialization:
		why = "the lease has ended since the transaction's snapshot, so it has to be rolled back: "
	case codeUndefinedTable, codeUndefinedSchema:
		why = "the lease table is not in this database, or in another schema (then call Guard of the store that has it): "
	}
	return fmt.Errorf("guard %q: %s%w", name, why, err)
}

func onceTx(ctx context.Context, tx Tx, key string, stmts statements) (bool, error) {
	if err := driver.CheckName(key); err != nil {
		return false, err
	}
	err := tx.QueryRow(ctx, stmts.named("once"), key).Scan(new(int))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("once %q: %w", key, err)
	}
	return true, nil
}
