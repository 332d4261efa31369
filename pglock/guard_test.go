package pglock_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

// fenced is a lease as a guard sees it.
type fenced struct {
	name  string
	fence uint64
}

func (f fenced) Name() string  { return f.name }
func (f fenced) Fence() uint64 { return f.fence }

func begin(t testing.TB, c *pgx.Conn) pgx.Tx {
	t.Helper()
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func brief(name string) driver.Claim { return drivertest.Mutex(name, time.Second) }

func TestGuardedTransactionEndsBeforeATakeover(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	a, b := open(t, rawURL), open(t, rawURL)
	bank := psql(t, rawURL)
	exec(t, bank, "CREATE TABLE account AS SELECT 100 AS balance")
	for _, mode := range []string{"exclusive", "shared"} {
		c := brief("account/" + mode)
		if mode == "shared" {
			c = drivertest.Reader("account/"+mode, time.Second)
		}
		c, g := drivertest.MustAcquire(t, a, c)
		lease := fenced{c.Name, g.Fence}
		tx := begin(t, psql(t, rawURL))
		if err := pglock.Guard(t.Context(), tx, lease); err != nil {
			t.Fatal(err)
		}
		balance := value[int](t, tx, "SELECT balance FROM account")
		if err := drivertest.RenewOne(t.Context(), a, c).Err; err != nil {
			t.Fatalf("a guard is in the way of a renewal: %v", err)
		}
		w := mutex(c.Name)
		w.Patience = 20 * time.Second
		refused(t, b, w)
		// The holder stands still for longer than its TTL, but its connection works on.
		for start := time.Now(); time.Since(start) < 1500*time.Millisecond; time.Sleep(50 * time.Millisecond) {
			value[int](t, tx, "SELECT 1")
		}
		e := refused(t, b, w)
		if e.RetryAfter <= 0 || e.RetryAfter > time.Second {
			t.Errorf("%s: ask again after %v, want a poll", mode, e.RetryAfter)
		}
		if _, err := tx.Exec(t.Context(), "UPDATE account SET balance = $1", balance-10); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, b, w)
		// The same again, too late.
		tx = begin(t, psql(t, rawURL))
		if err := pglock.Guard(t.Context(), tx, lease); !errors.Is(err, driver.ErrNotHeld) {
			t.Fatalf("%s: guarded after the takeover: %v, want ErrNotHeld", mode, err)
		}
		if got := value[int](t, tx, "SELECT balance FROM account"); got != balance-10 {
			t.Fatalf("balance %d, want %d", got, balance-10)
		}
	}
}

func TestReleaseBeforeTheCommitKeepsTheNameClosed(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	a, b := open(t, rawURL), open(t, rawURL)
	waits := drivertest.Mutex("waited for", 30*time.Second)
	waits.Patience = 20 * time.Second
	for name, end := range map[string]func(c driver.Claim) error{
		"released": func(c driver.Claim) error { return a.Release(t.Context(), c) },
		"waited for": func(c driver.Claim) error {
			refused(t, b, waits)
			return a.Release(t.Context(), c)
		},
		"revoked": func(c driver.Claim) error {
			return b.(driver.Revoker).Revoke(t.Context(), driver.Revocation{Name: c.Name, Token: c.Token, Now: true})
		},
	} {
		c, g := drivertest.MustAcquire(t, a, mutex(name))
		tx := begin(t, psql(t, rawURL))
		if err := pglock.Guard(t.Context(), tx, fenced{name, g.Fence}); err != nil {
			t.Fatal(err)
		}
		if err := end(c); err != nil { // and does not wait for itself
			t.Fatalf("%s: %v", name, err)
		}
		next := mutex(name)
		if name == waits.Name {
			next = waits // who was not handed the name
		}
		refused(t, b, next)
		if err := a.Release(t.Context(), c); !errors.Is(err, driver.ErrNotHeld) {
			t.Fatalf("%s, and released again: %v", name, err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		next, g2 := drivertest.MustAcquire(t, b, next)
		if g2.TookOver != (name == "revoked") {
			t.Errorf("%s: TookOver is %v", name, g2.TookOver)
		}
		drivertest.MustRelease(t, b, next)
	}
}

func TestFrozenGuardIsEndedByTheServer(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	a, b := open(t, rawURL), open(t, rawURL)
	c, g := drivertest.MustAcquire(t, a, brief("x"))
	tx := begin(t, psql(t, rawURL))
	if err := pglock.Guard(t.Context(), tx, fenced{c.Name, g.Fence}); err != nil {
		t.Fatal(err)
	}
	eventually(t, b, mutex("x")) // nobody commits
	if err := tx.Commit(t.Context()); err == nil {
		t.Fatal("a transaction was committed after the takeover")
	}
}

func TestOnceTx(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	once := func(commit bool) bool {
		tx := begin(t, psql(t, rawURL))
		first, err := pglock.OnceTx(t.Context(), tx, "pay/42")
		if err != nil {
			t.Fatal(err)
		}
		if commit {
			err = tx.Commit(t.Context())
		} else {
			err = tx.Rollback(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	if !once(false) || !once(true) || once(true) {
		t.Fatal("want: first, first after a rollback, and not again after a commit")
	}
}

// Of two at once the second waits for the end of the first.
func TestOnceTxTwiceAtOnce(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	admin := psql(t, rawURL)
	for _, commit := range []bool{false, true} {
		for _, level := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable} {
			key := string(level) + strconv.FormatBool(commit)
			one := begin(t, psql(t, rawURL))
			if first, err := pglock.OnceTx(t.Context(), one, key); err != nil || !first {
				t.Fatalf("%s: %v, %v", key, first, err)
			}
			two, err := psql(t, rawURL).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
			if err != nil {
				t.Fatal(err)
			}
			type answer struct {
				first bool
				err   error
			}
			answered := make(chan answer, 1)
			go func() { // ends with one
				first, err := pglock.OnceTx(t.Context(), two, key)
				answered <- answer{first, err}
			}()
			until(t, "a second that waits", func() bool {
				return value[bool](t, admin, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
			})
			end := one.Rollback
			if commit {
				end = one.Commit
			}
			if err := end(t.Context()); err != nil {
				t.Fatal(err)
			}
			got := <-answered
			if stale := commit && level != pgx.ReadCommitted; stale != (got.err != nil) || stale && !strings.Contains(got.err.Error(), "40001") {
				t.Errorf("%s, and the first has committed: %v: %v", level, commit, got.err)
			} else if got.err == nil && got.first == commit {
				t.Errorf("%s, and the first has committed: %v: the second is first: %v", level, commit, got.first)
			}
			if err := two.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// What is locked in a savepoint ends with that, if it is rolled back.
func TestSavepointsEndWhatWasLockedInThem(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	a, b := open(t, rawURL), open(t, rawURL)
	for _, kept := range []bool{true, false} {
		c, g := drivertest.MustAcquire(t, a, mutex("x"))
		tx := begin(t, psql(t, rawURL))
		inner, err := tx.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := pglock.Guard(t.Context(), inner, fenced{c.Name, g.Fence}); err != nil {
			t.Fatal(err)
		}
		if err := pglock.TryXact(t.Context(), inner, "x"); err != nil {
			t.Fatal(err)
		}
		end := inner.Rollback
		if kept {
			end = inner.Commit
		}
		if err := end(t.Context()); err != nil {
			t.Fatal(err)
		}
		drivertest.MustRelease(t, a, c)
		_, held := b.Acquire(t.Context(), mutex("x"))
		locked := pglock.TryXact(t.Context(), begin(t, psql(t, rawURL)), "x")
		for what, err := range map[string]error{"the guard": held, "the lock": locked} {
			if kept != errors.Is(err, driver.ErrHeld) || !kept && err != nil {
				t.Errorf("%s after a savepoint that was kept: %v: others are told %v", what, kept, err)
			}
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever a transaction is like, a guard holds, or says why it can't.
func TestGuardInAnyTransaction(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	a, b := open(t, rawURL), open(t, rawURL)
	c := psql(t, rawURL)
	for _, options := range []pgx.TxOptions{
		{IsoLevel: pgx.ReadCommitted},
		{IsoLevel: pgx.RepeatableRead},
		{IsoLevel: pgx.Serializable},
		{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly},
	} {
		m, g := drivertest.MustAcquire(t, a, mutex("x"))
		lease := fenced{m.Name, g.Fence}
		tx, err := c.BeginTx(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		err = pglock.Guard(t.Context(), tx, lease)
		switch {
		case options.AccessMode == pgx.ReadOnly:
			if err == nil || !strings.Contains(err.Error(), "READ WRITE") {
				t.Errorf("%+v: %v, want an error that says what to do", options, err)
			}
		case err != nil:
			t.Errorf("%+v: %v", options, err)
		default:
			drivertest.MustRelease(t, a, m)
			refused(t, b, mutex("x")) // until the commit
		}
		if err == nil {
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			n := eventually(t, b, mutex("x"))
			drivertest.MustRelease(t, b, n)
			continue
		}
		if err := pglock.Guard(t.Context(), tx, lease); err == nil || !strings.Contains(err.Error(), "rolled back") {
			t.Errorf("in an aborted transaction: %v", err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		drivertest.MustRelease(t, a, m)
	}

	// What has happened since the snapshot: a renewal, and an end.
	for _, ended := range []bool{false, true} {
		m, g := drivertest.MustAcquire(t, a, mutex("x"))
		tx, err := c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SELECT 1 FROM pg_class LIMIT 1"); err != nil {
			t.Fatal(err)
		}
		if ended {
			drivertest.MustRelease(t, a, m)
		} else if p := drivertest.RenewOne(t.Context(), a, m); p.Err != nil {
			t.Fatal(p.Err)
		}
		err = pglock.Guard(t.Context(), tx, fenced{m.Name, g.Fence})
		if ended != (err != nil) || ended && !strings.Contains(err.Error(), "has ended since") {
			t.Errorf("ended %v since the snapshot: %v", ended, err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !ended {
			drivertest.MustRelease(t, a, m)
		}
	}
}
