package pglock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
)

// ErrDeadlock: two transactions waited for each other, and PostgreSQL chose this
// one to give up (40P01). The other one goes on.
var ErrDeadlock = errors.New("deadlock: this transaction gave up")

var xact = parseStatements(xactSQL, "")

// Keys says how a name becomes the key of an advisory lock. The zero value makes
// the keys that pgadvisory:// uses by default, so that both exclude each other.
type Keys struct {
	// Namespace keeps equal names of different programs apart.
	Namespace string
	// HashText makes the keys that pg_advisory_lock(hashtext(name)) locks.
	HashText bool
	// Raw takes a name for the key itself: a bigint, or two int4 with a comma
	// between.
	Raw bool
}

// TryXact locks name for the rest of tx, or returns a *driver.HeldError at once.
// The lock ends with tx, by commit or rollback, and needs no care meanwhile; one that
// is taken in a savepoint (a nested pgx.Tx) ends if that is rolled back. A standby has
// advisory locks of its own, so there it is a *driver.RejectedError.
//
// Above READ COMMITTED, what tx reads is as of its first statement, which may lie
// before the end of the former holder: lock first, and read in a transaction that
// began thereafter, or use READ COMMITTED.
func TryXact(ctx context.Context, tx Tx, name string) error { return Keys{}.TryXact(ctx, tx, name) }

// Xact locks name for the rest of tx. It waits until it is free or ctx's deadline
// has come, which is then a *driver.HeldError, and tx goes on without the lock. If
// ctx is cancelled while it waits, pgx closes the connection and tx is rolled back.
//
// Above READ COMMITTED it does not wait: tx would not see what the former holder
// did. It is errors.ErrUnsupported there, if the name is not free.
func Xact(ctx context.Context, tx Tx, name string) error { return Keys{}.Xact(ctx, tx, name) }

// InXact runs fn in a transaction that has name locked, and commits it if fn
// returns nil. It waits as [Xact] does. All that fn does in tx is undone if the
// lock is lost, since only the transaction's own end can end it.
func InXact(ctx context.Context, db Beginner, name string, fn func(tx pgx.Tx) error) error {
	return Keys{}.InXact(ctx, db, name, fn)
}

// InXactSQL is [InXact] for database/sql.
func InXactSQL(ctx context.Context, db *sql.DB, name string, fn func(tx *sql.Tx) error) error {
	return Keys{}.InXactSQL(ctx, db, name, fn)
}

// A Beginner is a *pgxpool.Pool or a *pgx.Conn.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// TryXact is [TryXact] with these keys.
func (k Keys) TryXact(ctx context.Context, tx Tx, name string) error {
	_, _, err := k.try(ctx, tx, name)
	return err
}

func (k Keys) try(ctx context.Context, tx Tx, name string) (key, string, error) {
	id, err := k.of(ctx, tx, name)
	if err != nil {
		return id, "", err
	}
	var isolation string
	var standby, ok bool
	if err := tx.QueryRow(ctx, xact.named("try"), id.k, id.two).Scan(&isolation, &standby, &ok); err != nil {
		return id, "", xactFailed(name, err)
	}
	switch {
	case standby:
		return id, isolation, driver.Rejectedf(name, "lock for a transaction: %w", errStandby)
	case !ok:
		return id, isolation, &driver.HeldError{Name: name}
	}
	return id, isolation, nil
}

// Xact is [Xact] with these keys.
func (k Keys) Xact(ctx context.Context, tx Tx, name string) error {
	id, isolation, err := k.try(ctx, tx, name)
	if !errors.Is(err, driver.ErrHeld) {
		return err
	}
	if isolation != "read committed" {
		return driver.Unsupportedf("lock %q for a transaction: it is held, and after a wait a transaction at %s would not see what its former holder did: use READ COMMITTED", name, isolation)
	}
	// A lock_timeout aborts the transaction, so it is for a savepoint to suffer.
	if _, err := tx.Exec(ctx, "SAVEPOINT dibs_xact"); err != nil {
		return xactFailed(name, err)
	}
	if err := waitXact(ctx, tx, id); err != nil {
		if _, e := tx.Exec(ctx, "ROLLBACK TO SAVEPOINT dibs_xact"); e != nil {
			return errors.Join(xactFailed(name, err), e)
		}
		return xactFailed(name, err)
	}
	if _, err := tx.Exec(ctx, "RELEASE SAVEPOINT dibs_xact"); err != nil {
		return xactFailed(name, err)
	}
	return nil
}

func waitXact(ctx context.Context, tx Tx, id key) error {
	old := ""
	if deadline, ok := ctx.Deadline(); ok {
		// A little before ctx ends, so that the answer still arrives: else pgx closes the
		// connection, and the transaction is lost.
		left := time.Until(deadline)
		ms := max((left - min(left/10, 500*time.Millisecond)).Milliseconds(), 1)
		if err := tx.QueryRow(ctx, xact.named("timeout"), strconv.FormatInt(ms, 10)).Scan(&old, new(string)); err != nil {
			return err
		}
	}
	if err := tx.QueryRow(ctx, xact.named("wait"), id.k, id.two).Scan(new(sql.NullString)); err != nil {
		return err
	}
	if old != "" {
		return tx.QueryRow(ctx, xact.named("timeout"), old).Scan(new(string), new(string))
	}
	return nil
}

// InXact is [InXact] with these keys.
func (k Keys) InXact(ctx context.Context, db Beginner, name string, fn func(tx pgx.Tx) error) (err error) {
	tx, err := db.Begin(ctx)
	if err != nil {
		return fmt.Errorf("begin a transaction that locks %q: %w", name, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // also if fn panics; nothing, after a commit
	if err := k.Xact(ctx, tx, name); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// InXactSQL is [InXactSQL] with these keys.
func (k Keys) InXactSQL(ctx context.Context, db *sql.DB, name string, fn func(tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin a transaction that locks %q: %w", name, err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := k.Xact(ctx, SQL(tx), name); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// of is the key of name.
func (k Keys) of(ctx context.Context, tx Tx, name string) (key, error) {
	if err := driver.CheckName(name); err != nil {
		return key{}, err
	}
	switch {
	case k.Raw:
		return rawKey(name)
	case k.HashText:
		var id key
		if err := tx.QueryRow(ctx, xact.named("hashtext"), name).Scan(&id.k); err != nil {
			return key{}, xactFailed(name, err)
		}
		return id, nil
	}
	return shaKey(k.Namespace, name), nil
}

// xactFailed says what an error of a lock for a transaction means.
func xactFailed(name string, err error) error {
	switch sqlState(err) {
	case codeLockTimeout:
		return &driver.HeldError{Name: name}
	case codeDeadlock:
		return fmt.Errorf("lock %q for a transaction: %w: %w", name, ErrDeadlock, err)
	case codeAborted:
		return fmt.Errorf("lock %q for a transaction: an earlier statement failed, so it has to be rolled back: %w", name, err)
	}
	return fmt.Errorf("lock %q for a transaction: %w", name, err)
}
