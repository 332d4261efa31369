package pglock_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

func TestLockForATransaction(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	s := open(t, advisory(rawURL))
	one, two := begin(t, psql(t, rawURL)), begin(t, psql(t, rawURL))
	if err := pglock.TryXact(t.Context(), one, "x"); err != nil {
		t.Fatal(err)
	}
	isHeld(t, pglock.TryXact(t.Context(), two, "x"))
	refused(t, s, mutex("x")) // the same key
	if err := one.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := pglock.TryXact(t.Context(), two, "x"); err != nil {
		t.Fatal(err)
	}
	if err := two.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, _ := drivertest.MustAcquire(t, s, mutex("x"))
	defer drivertest.MustRelease(t, s, c)

	db, err := sql.Open("pgx", rawURL)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	isHeld(t, pglock.TryXact(t.Context(), pglock.SQL(tx), "x"))
	if err := pglock.TryXact(t.Context(), pglock.SQL(tx), "y"); err != nil {
		t.Fatal(err)
	}
	hashed := pglock.Keys{HashText: true}
	if err := hashed.TryXact(t.Context(), pglock.SQL(tx), "z"); err != nil {
		t.Fatal(err)
	}
	if value[bool](t, psql(t, rawURL), "SELECT pg_try_advisory_xact_lock(hashtext('z'))") {
		t.Fatal("another client got what we hold")
	}
}

func TestXactWaitsUntilItsDeadline(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]func(t *testing.T, rawURL string) pglock.Tx{
		"pgx": func(t *testing.T, rawURL string) pglock.Tx { return begin(t, psql(t, rawURL)) },
		"read only": func(t *testing.T, rawURL string) pglock.Tx {
			c := psql(t, rawURL)
			exec(t, c, "SET default_transaction_read_only = on")
			return begin(t, c)
		},
		"database/sql": func(t *testing.T, rawURL string) pglock.Tx {
			db, err := sql.Open("pgx", rawURL)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			tx, err := db.Begin()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback() })
			return pglock.SQL(tx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rawURL := newStore(t, servers.SharedPostgres(t))
			holder := begin(t, psql(t, rawURL))
			if err := pglock.Xact(t.Context(), holder, "x"); err != nil {
				t.Fatal(err)
			}
			tx := begun(t, rawURL)
			if _, err := tx.Exec(t.Context(), "SET LOCAL lock_timeout = '7s'"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			isHeld(t, pglock.Xact(ctx, tx, "x"))
			value[int](t, tx, "SELECT 1") // the transaction goes on
			waited := make(chan error, 1)
			ctx, cancel = context.WithTimeout(t.Context(), long)
			defer cancel()
			go func() { waited <- pglock.Xact(ctx, tx, "x") }() // ends with the holder's transaction
			until(t, "a waiter", func() bool {
				return value[int](t, holder, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == 1
			})
			if err := holder.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-waited; err != nil {
				t.Fatal(err)
			}
			if got := value[string](t, tx, "SHOW lock_timeout"); got != "7s" {
				t.Errorf("lock_timeout is %s after the wait", got)
			}
		})
	}
}

func TestXactDoesNotWaitWithAnOldSnapshot(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	holder := begin(t, psql(t, rawURL))
	if err := pglock.Xact(t.Context(), holder, "x"); err != nil {
		t.Fatal(err)
	}
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		tx, err := psql(t, rawURL).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.Background())
		if err := pglock.Xact(t.Context(), tx, "x"); !errors.Is(err, errors.ErrUnsupported) {
			t.Fatalf("%s: %v, want ErrUnsupported", level, err)
		}
		isHeld(t, pglock.TryXact(t.Context(), tx, "x"))
		if err := pglock.Xact(t.Context(), tx, "free"+string(level)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeadlockOfTransactionsIsTyped(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	txs := []pgx.Tx{begin(t, psql(t, rawURL)), begin(t, psql(t, rawURL))}
	names := []string{"a", "b"}
	for i, tx := range txs {
		if err := pglock.Xact(t.Context(), tx, names[i]); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 2)
	for i, tx := range txs {
		go func() { // ends by the server's choice, or with the other's transaction
			err := pglock.Xact(context.Background(), tx, names[1-i])
			if err != nil {
				_ = tx.Rollback(context.Background())
			}
			ended <- err
		}()
	}
	one, two := <-ended, <-ended
	if one == nil {
		one, two = two, one
	}
	if !errors.Is(one, pglock.ErrDeadlock) || two != nil {
		t.Fatalf("got %v and %v, want a deadlock and a lock", one, two)
	}
}

func TestAbortedTransactionSaysSo(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	tx := begin(t, psql(t, newStore(t, p)))
	if _, err := tx.Exec(t.Context(), "SELECT 1/0"); err == nil {
		t.Fatal("no error")
	}
	if err := pglock.TryXact(t.Context(), tx, "x"); err == nil || !strings.Contains(err.Error(), "rolled back") {
		t.Fatalf("got %v", err)
	}
}

func TestInXact(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	c, db := psql(t, rawURL), psql(t, rawURL)
	exec(t, db, "CREATE TABLE done (n int)")
	boom := errors.New("boom")
	err := pglock.InXact(t.Context(), c, "x", func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "INSERT INTO done VALUES (1)"); err != nil {
			return err
		}
		return boom
	})
	if !errors.Is(err, boom) || value[int](t, db, "SELECT count(*) FROM done") != 0 {
		t.Fatalf("got %v, want the error and a rollback", err)
	}
	std, err := sql.Open("pgx", rawURL)
	if err != nil {
		t.Fatal(err)
	}
	defer std.Close()
	std.SetMaxOpenConns(1)
	err = pglock.InXactSQL(t.Context(), std, "x", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), "INSERT INTO done VALUES (2)")
		isHeld(t, pglock.TryXact(t.Context(), begin(t, c), "x"))
		return err
	})
	if err != nil || value[int](t, db, "SELECT count(*) FROM done") != 1 {
		t.Fatalf("got %v, want a commit", err)
	}
	var e *driver.HeldError
	if errors.As(err, &e) {
		t.Fatal(e)
	}
}
