package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

// ours are the backends of the stores on a database.
const ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dibs' AND datname = current_database()"

func losses(t testing.TB, s driver.Store) <-chan driver.Loss {
	t.Helper()
	ch, err := s.(driver.LossFeed).Losses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func lost(t testing.TB, ch <-chan driver.Loss, c driver.Claim) {
	t.Helper()
	select {
	case l := <-ch:
		if l.ID != c.ID || !errors.Is(l.Err, driver.ErrNotHeld) {
			t.Fatalf("a loss %+v, want that of %+v", l, c)
		}
	case <-time.After(long):
		t.Fatal("the loss was not told")
	}
}

func TestTerminatedBackendIsALossAtOnce(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	a, b := open(t, advisory(rawURL)), open(t, advisory(rawURL))
	c, _ := drivertest.MustAcquire(t, a, mutex("x"))
	told := losses(t, a)
	exec(t, psql(t, rawURL), "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
	lost(t, told, c)
	eventually(t, b, mutex("x"))
	if p := drivertest.RenewOne(t.Context(), a, c); !errors.Is(p.Err, driver.ErrNotHeld) {
		t.Fatalf("renewed after the loss: %v", p.Err)
	}
	drivertest.MustAcquire(t, a, mutex("y")) // it has a session again
}

func TestRestartEndsSessionsAndNothingElse(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t)
	rawURL := advisory(newStore(t, p))
	a := open(t, rawURL)
	c, g := drivertest.MustAcquire(t, a, mutex("x"))
	told := losses(t, a)
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
	lost(t, told, c)
	again := eventually(t, a, mutex("x"))
	if again.Token <= g.Token {
		t.Fatalf("token %d after %d", again.Token, g.Token)
	}
}

func TestShortIdleTimeoutOfTheDatabaseEndsNothing(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	for name, settings := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rawURL := newStore(t, p)
			db, _, _ := strings.Cut(rawURL[strings.LastIndex(rawURL, "/")+1:], "?")
			alter(t, p, db, settings)
			a, b := open(t, advisory(rawURL)), open(t, advisory(rawURL))
			c, _ := drivertest.MustAcquire(t, a, mutex("x"))
			r, _ := drivertest.MustAcquire(t, a, drivertest.Reader("y", 30*time.Second))
			time.Sleep(2500 * time.Millisecond) // more than twice the time-out: nothing tells that it has not struck
			refused(t, b, mutex("x"))
			refused(t, b, mutex("y"))
			drivertest.MustAcquire(t, b, drivertest.Reader("y", 30*time.Second))
			for _, p := range []driver.Proof{drivertest.RenewOne(t.Context(), a, c), drivertest.RenewOne(t.Context(), a, r)} {
				if p.Err != nil {
					t.Fatal(p.Err)
				}
			}
			drivertest.MustRelease(t, a, c)
			drivertest.MustAcquire(t, b, mutex("x"))
		})
	}
}

// On a connection that is cut in two, our end is the first to give up: the server's
// frees the locks.
func TestServerWaitsForLongerThanHoldersTrust(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	db, _, _ := strings.Cut(rawURL[strings.LastIndex(rawURL, "/")+1:], "?")
	alter(t, p, db, []string{
		"idle_session_timeout = '1s'", "tcp_user_timeout = '1s'", "statement_timeout = 0", "lock_timeout = 0",
		"tcp_keepalives_idle = 7200", "tcp_keepalives_interval = 75", "tcp_keepalives_count = 9",
	})
	a := open(t, advisory(rawURL)).(*pglock.Advisory)
	ms := func(sum string) time.Duration {
		t.Helper()
		n, err := a.Ask(t.Context(), "SELECT ("+regexp.MustCompile(`[a-z_]{3,}`).ReplaceAllString(sum, "(SELECT setting::bigint FROM pg_settings WHERE name = '$0')")+")::bigint")
		if err != nil {
			t.Fatalf("%s: %v", sum, err)
		}
		return time.Duration(n) * time.Millisecond
	}
	trust := a.Facts().MaxTTL
	for _, sum := range []string{"idle_session_timeout", "tcp_user_timeout", "1000 * (tcp_keepalives_idle + tcp_keepalives_interval * tcp_keepalives_count)"} {
		if d := ms(sum); d <= trust || d > 2*trust {
			t.Errorf("%s is %v, want a little more than %v", sum, d, trust)
		}
	}
	if d := ms("lock_timeout"); d == 0 || d > time.Second {
		t.Errorf("lock_timeout is %v: one request holds up all others for as long", d)
	}
	if d := ms("statement_timeout"); d == 0 || d > trust/2 {
		t.Errorf("statement_timeout is %v: nothing is renewed for as long", d)
	}
}

func TestPoolersAreRefused(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	for _, mode := range []string{"transaction", "session"} {
		b := servers.PgBouncer(t, p, mode, 10)
		there := advisory(with(t, rawURL, b.Addr()))
		_, err := driver.Open(t.Context(), there)
		if !errors.Is(err, driver.ErrRejected) || !strings.Contains(err.Error(), "postgres://") {
			t.Fatalf("%s mode: %v, want an ErrRejected that says what to use", mode, err)
		}
		if mode == "session" {
			a, b := open(t, with(t, there, "", "pooler", "session")), open(t, with(t, there, "", "pooler", "session"))
			c, _ := drivertest.MustAcquire(t, a, mutex("x"))
			refused(t, b, mutex("x"))
			refused(t, open(t, advisory(rawURL)), mutex("x"))
			drivertest.MustRelease(t, a, c)
			drivertest.MustAcquire(t, b, mutex("x"))
		}
	}
}

func TestOtherClientsExcludeUsAndWeThem(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	for name, x := range map[string]struct{ params, name, lock, try, unlock string }{
		"hashtext": {"hash=hashtext", "invoice:process", "SELECT pg_advisory_lock(hashtext('invoice:process'))", "SELECT pg_try_advisory_lock(hashtext('invoice:process'))", "SELECT pg_advisory_unlock(hashtext('invoice:process'))"},
		"raw":      {"key=raw", "-42", "SELECT pg_advisory_lock(-42)", "SELECT pg_try_advisory_lock(-42)", "SELECT pg_advisory_unlock(-42)"},
		"two":      {"key=raw", "-4,2", "SELECT pg_advisory_lock(-4, 2)", "SELECT pg_try_advisory_lock(-4, 2)", "SELECT pg_advisory_unlock(-4, 2)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, v, _ := strings.Cut(x.params, "=")
			s := open(t, advisory(with(t, rawURL, "", key, v)))
			other := psql(t, rawURL)
			exec(t, other, x.lock)
			refused(t, s, mutex(x.name))
			exec(t, other, x.unlock)
			c, _ := drivertest.MustAcquire(t, s, mutex(x.name))
			if value[bool](t, other, x.try) {
				t.Fatal("another client got what we hold")
			}
			// As in other programs: for a transaction.
			exec(t, other, "BEGIN")
			if value[bool](t, other, strings.Replace(x.try, "pg_try_advisory_lock", "pg_try_advisory_xact_lock", 1)) {
				t.Fatal("another client got what we hold")
			}
			exec(t, other, "ROLLBACK")
			drivertest.MustRelease(t, s, c)
			if !value[bool](t, other, x.try) {
				t.Fatal("another client did not get what we gave back")
			}
		})
	}
}

func TestCollidingNamesAreToldApart(t *testing.T) {
	t.Parallel()
	s := open(t, advisory(with(t, newStore(t, servers.SharedPostgres(t)), "", "hash", "hashtext")))
	drivertest.MustAcquire(t, s, mutex("job-4775"))
	e := refused(t, s, mutex("job-298872")) // the same 32 bits
	if e.Holder == nil || !strings.Contains(e.Holder.Note, "job-4775") {
		t.Fatalf("refused by %+v, want a word about the other name", e.Holder)
	}
}

// waiters counts the calls of Lock that were refused, and wait.
type waiters struct{ n atomic.Int64 }

func (w *waiters) hooks() dibs.Hooks {
	type call struct{}
	return dibs.Hooks{
		Acquiring: func(ctx context.Context, _ dibs.AcquireInfo) context.Context {
			return context.WithValue(ctx, call{}, new(sync.Once))
		},
		Waiting: func(ctx context.Context, _ dibs.AcquireInfo, _ *dibs.HeldError) {
			ctx.Value(call{}).(*sync.Once).Do(func() { w.n.Add(1) })
		},
	}
}

func TestThousandHeldAndThousandWaitedForOnFewConnections(t *testing.T) {
	t.Parallel()
	const n = 1000
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	var waiting waiters
	client, err := dibs.Open(t.Context(), advisory(with(t, rawURL, "", "hash", "hashtext")), &dibs.Options{Hooks: waiting.hooks()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	for i := range n {
		if _, err := client.Mutex(fmt.Sprintf("held-%d", i)).TryLock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	foreign, rival := psql(t, rawURL), open(t, advisory(with(t, rawURL, "", "hash", "hashtext")))
	var mine []driver.Claim
	for i := range n {
		name := fmt.Sprintf("wait-%d", i)
		if i%10 == 0 {
			exec(t, foreign, "SELECT pg_advisory_lock(hashtext($1))", name)
			continue
		}
		c, _ := drivertest.MustAcquire(t, rival, mutex(name))
		mine = append(mine, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*long)
	defer cancel()
	var wg sync.WaitGroup
	var failed sync.Map
	granted := make([]time.Time, n)
	for i := range n {
		wg.Go(func() { // ends with its lock, or with ctx
			if _, err := client.Mutex(fmt.Sprintf("wait-%d", i)).Lock(ctx); err != nil {
				failed.Store(i, err)
			}
			granted[i] = time.Now()
		})
	}
	freed := make([]time.Time, n)
	until(t, "all who wait", func() bool { return waiting.n.Load() == n })
	until(t, "two connections, or fewer", func() bool { return value[int](t, foreign, ours) <= 3 })
	for _, c := range mine {
		drivertest.MustRelease(t, rival, c)
		var i int
		if _, err := fmt.Sscanf(c.Name, "wait-%d", &i); err != nil {
			t.Fatal(err)
		}
		freed[i] = time.Now()
	}
	for i := 0; i < n; i += 10 {
		exec(t, foreign, "SELECT pg_advisory_unlock(hashtext($1))", fmt.Sprintf("wait-%d", i))
		freed[i] = time.Now()
	}
	wg.Wait()
	failed.Range(func(i, err any) bool { t.Errorf("waiter %v: %v", i, err); return true })
	var slowest time.Duration
	for i := range n {
		slowest = max(slowest, granted[i].Sub(freed[i]))
	}
	t.Logf("the slowest waiter got in %v after its name was free", slowest)
	if k := value[int](t, foreign, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); k != 0 {
		t.Errorf("%d deadlocks", k)
	}
	if k := value[int](t, foreign, ours); k > 4 {
		t.Errorf("%d connections", k)
	}
}

func TestIndexIsBuiltConcurrentlyWhileOthersWait(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	client, err := dibs.Open(t.Context(), advisory(rawURL), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	migrate := psql(t, rawURL)
	exec(t, migrate, "CREATE TABLE t AS SELECT generate_series(1, 1000) AS n")
	lease, err := client.Mutex("migrations").TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	const n = 10
	var wg sync.WaitGroup
	var waiting waiters
	for range n {
		other, err := dibs.Open(t.Context(), advisory(rawURL), &dibs.Options{Hooks: waiting.hooks()})
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close(context.Background())
		wg.Go(func() { // ends with its turn, or with ctx
			if err := other.Mutex("migrations").Do(ctx, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	until(t, "all who wait", func() bool { return waiting.n.Load() == n })
	exec(t, migrate, "CREATE INDEX CONCURRENTLY ON t (n)")
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

func TestWhatNobodyWantsIsGivenBack(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t)
	rawURL := newStore(t, p)
	a, b := open(t, advisory(rawURL)), open(t, advisory(rawURL))
	c, _ := drivertest.MustAcquire(t, a, mutex("other"))
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := a.Acquire(ctx, mutex("x")); driver.Certain(err) {
		t.Fatalf("a server that hangs: %v, want an unknown error", err)
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, b, mutex("x"))
	if p := drivertest.RenewOne(t.Context(), a, c); p.Err != nil {
		t.Fatalf("one impatient caller ended another's claim: %v", p.Err)
	}
}

func TestFailedStatementLeavesNoLock(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	a, b := open(t, advisory(with(t, rawURL, "", "key", "raw"))), open(t, advisory(with(t, rawURL, "", "key", "raw")))
	c, _ := drivertest.MustAcquire(t, a, mutex("42"))
	drivertest.MustRelease(t, a, c)
	other := psql(t, rawURL)
	exec(t, other, "BEGIN")
	exec(t, other, "SELECT FROM dibs.fences WHERE k = 42 FOR UPDATE")
	if _, err := a.Acquire(t.Context(), mutex("42")); err == nil || driver.Certain(err) {
		t.Fatalf("with the fence's row locked: %v, want an unknown error", err)
	}
	drivertest.MustAcquire(t, a, mutex("43")) // the session goes on
	exec(t, other, "COMMIT")
	drivertest.MustAcquire(t, b, mutex("42"))
	locks := "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	if n := value[int](t, other, locks); n != 2 {
		t.Fatalf("%d locks, want those of 42 and 43", n)
	}
}

func TestCutOffSessionIsBuriedByTheNext(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	link := proxy.New(t, p.Addr())
	a, b := open(t, advisory(with(t, rawURL, link.Addr()))), open(t, advisory(rawURL))
	c, _ := drivertest.MustAcquire(t, a, mutex("x"))
	told := losses(t, a)
	link.Set(proxy.BlackHole)
	if err := drivertest.RenewOne(shortly(t), a, c).Err; driver.Certain(err) {
		t.Fatalf("cut off: %v, want an unknown error", err)
	}
	refused(t, b, mutex("x")) // the server does not know yet
	lost(t, told, c)          // the session was silent for too long
	link.Heal()
	eventually(t, b, mutex("x"))
	drivertest.MustAcquire(t, a, mutex("y"))
}

func shortly(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestFencesLieBetweenWriters(t *testing.T) {
	t.Parallel()
	rawURL := advisory(newStore(t, servers.SharedPostgres(t)))
	a, b := open(t, rawURL), open(t, rawURL)
	var last, token uint64
	for range 3 {
		w, g := drivertest.MustAcquire(t, a, mutex("x"))
		if g.Token <= token {
			t.Fatalf("a writer with token %d after %d", g.Token, token)
		}
		for range 5 { // writers alone
			drivertest.MustRelease(t, a, w)
			w, g = drivertest.MustAcquire(t, a, mutex("x"))
		}
		token = g.Token
		if g.Fence <= last || g.Fence != g.Token {
			t.Fatalf("a writer with %+v after fence %d", g, last)
		}
		last = g.Fence
		drivertest.MustRelease(t, a, w)
		r1, g1 := drivertest.MustAcquire(t, a, drivertest.Reader("x", 30*time.Second))
		r2, g2 := drivertest.MustAcquire(t, a, drivertest.Reader("x", 30*time.Second))
		r3, g3 := drivertest.MustAcquire(t, b, drivertest.Reader("x", 30*time.Second))
		if g1.Fence <= last || g2.Fence != g1.Fence || g3.Fence != g1.Fence {
			t.Fatalf("readers with fences %d, %d and %d after a writer's %d", g1.Fence, g2.Fence, g3.Fence, last)
		}
		if token >= g1.Token || g1.Token >= g2.Token || g2.Token >= g3.Token {
			t.Fatalf("readers with tokens %d, %d and %d after a writer's %d", g1.Token, g2.Token, g3.Token, token)
		}
		token = g3.Token
		last = g1.Fence
		drivertest.MustRelease(t, a, r1)
		refused(t, b, mutex("x"))
		drivertest.MustRelease(t, a, r2)
		drivertest.MustRelease(t, b, r3)
	}
}

func TestWithoutFencesNothingIsWritten(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := p.URL(database(t, p)) // no schema
	s := open(t, advisory(with(t, rawURL, "", "fence", "off")))
	c, g := drivertest.MustAcquire(t, s, mutex("x"))
	if g.Fence != 0 || s.Facts().Fencing != driver.NoFencing {
		t.Fatalf("granted %+v without fences, facts: %v", g, s.Facts().Fencing)
	}
	drivertest.MustRelease(t, s, c)
	if _, err := driver.Open(t.Context(), advisory(rawURL)); !errors.Is(err, driver.ErrRejected) {
		t.Fatalf("with fences and no schema: %v, want an ErrRejected", err)
	}
}

// Telling costs the server about a third of a pair of calls, and rouses every client.
func TestReleaseTellsIfSomebodyWaits(t *testing.T) {
	t.Parallel()
	rawURL := newStore(t, servers.SharedPostgres(t))
	a, b := open(t, advisory(rawURL)), open(t, advisory(rawURL))
	ear := psql(t, rawURL)
	exec(t, ear, `LISTEN "dibs.keys.dibs"`)
	first := func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		n, err := ear.WaitForNotification(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return n.Payload
	}
	pair := func() {
		c, _ := drivertest.MustAcquire(t, a, mutex("x"))
		drivertest.MustRelease(t, a, c)
	}
	pair()
	exec(t, psql(t, rawURL), `NOTIFY "dibs.keys.dibs", 'nobody'`)
	if got := first(); got != "nobody" {
		t.Fatalf("%q was told, and nobody waits", got)
	}
	held, _ := drivertest.MustAcquire(t, a, mutex("x"))
	signals, stop, err := b.(driver.Watcher).Watch(t.Context(), mutex("x"))
	if err != nil {
		t.Fatal(err)
	}
	refused(t, b, mutex("x"))
	drivertest.MustRelease(t, a, held)
	<-signals
	if got := first(); got == "nobody" {
		t.Fatal("nothing was told")
	}
	stop()
	until(t, "a server without a flag", func() bool {
		return value[int](t, ear, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())") == 0
	})
}
