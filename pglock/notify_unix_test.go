//go:build unix

package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// A commit that notifies has the queue of all databases to itself until it is over,
// so another program's may stand in the way of ours for long.
func TestBusyQueueOfNotificationsEndsNoSession(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t)
	table := newStore(t, p)
	rawURL := advisory(table)
	a, b := open(t, rawURL), open(t, rawURL)
	held, _ := drivertest.MustAcquire(t, a, mutex("x"))
	other, _ := drivertest.MustAcquire(t, a, mutex("other"))
	known, _ := drivertest.MustAcquire(t, a, mutex("known"))
	drivertest.MustRelease(t, a, known)
	_, stop, err := b.(driver.Watcher).Watch(t.Context(), mutex("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	refused(t, b, mutex("x"))
	told := losses(t, a)
	free := busyQueue(t, p)
	drivertest.MustRelease(t, a, held)
	again, _ := drivertest.MustAcquire(t, b, mutex("x")) // b still shows that it waits
	if p := drivertest.RenewOne(t.Context(), a, other); p.Err != nil {
		t.Fatalf("a release that nobody could be told of ended another claim: %v", p.Err)
	}
	// A try that fails gives back what it may have taken, and tells.
	hand := begin(t, psql(t, table))
	if _, err := hand.Exec(t.Context(), "SELECT FROM dibs.fences FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Acquire(t.Context(), mutex("known")); err == nil || driver.Certain(err) {
		t.Fatalf("with the fence's row locked: %v, want an unknown error", err)
	}
	if p := drivertest.RenewOne(t.Context(), a, other); p.Err != nil {
		t.Fatalf("a try that failed ended another claim: %v", p.Err)
	}
	if err := hand.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case l := <-told:
		t.Fatalf("lost %+v", l)
	default:
	}

	// Who asks waits for the queue, and so does who answers.
	type listing struct {
		holders []driver.Holder
		err     error
	}
	listed := make(chan listing, 1)
	go func() { // ends once the queue is free
		var l listing
		for h, err := range b.(driver.Lister).List(t.Context(), "") {
			if err != nil {
				l.err = err
				break
			}
			l.holders = append(l.holders, h)
		}
		listed <- l
	}()
	admin := psql(t, p.URL("postgres"))
	until(t, "a question that waits for longer than an answer to a try may", func() bool {
		return value[bool](t, admin, "SELECT count(*) > 0 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE a.application_name = 'dibs' AND NOT l.granted AND l.waitstart < clock_timestamp() - interval '200ms'")
	})
	free()
	if l := <-listed; l.err != nil || len(l.holders) != 2 {
		t.Fatalf("listed: %+v, %v", l.holders, l.err)
	}
	drivertest.MustRelease(t, b, again)
}

// A holder that is asked answers as soon as it can.
func TestBusyQueueOfNotificationsLosesNoAnswer(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t)
	rawURL := newStore(t, p)
	a, ear := open(t, advisory(rawURL)), psql(t, rawURL)
	drivertest.MustAcquire(t, a, mutex("x"))
	pid := value[int](t, ear, "SELECT pid FROM pg_stat_activity WHERE application_name = 'dibs' AND datname = current_database()")
	exec(t, ear, "LISTEN answers")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	exec(t, psql(t, rawURL), `NOTIFY "dibs.ask", '{"to": "answers", "dialect": "sha256 "}'`)
	free := busyQueue(t, p)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "an answer that can't be told", func() bool { return strings.Contains(p.Log(), "lock timeout") })
	free()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	n, err := ear.WaitForNotification(ctx)
	if err != nil || !strings.Contains(n.Payload, `"Name":"x"`) {
		t.Fatalf("answered %+v, %v", n, err)
	}
}

// Who can't be told asks by itself, so the table's steps are not held up for that.
func TestBusyQueueOfNotificationsIsNoReasonNotToLetGo(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t)
	rawURL := newStore(t, p)
	a, b := open(t, rawURL), open(t, rawURL)
	held, _ := drivertest.MustAcquire(t, a, mutex("released"))
	ended, _ := drivertest.MustAcquire(t, a, brief("ended"))
	w := mutex("released")
	w.Patience = time.Minute
	refused(t, b, w)
	free := busyQueue(t, p)
	defer free()
	drivertest.MustRelease(t, a, held)
	drivertest.MustAcquire(t, b, w)
	until(t, "a takeover of two at once", func() bool {
		_, err := b.(driver.Batcher).AcquireAll(t.Context(), []driver.Claim{mutex(ended.Name), mutex("free")})
		if err != nil && !errors.Is(err, driver.ErrHeld) {
			t.Fatal(err)
		}
		return err == nil
	})
	if p := drivertest.RenewOne(t.Context(), a, ended); !errors.Is(p.Err, driver.ErrNotHeld) {
		t.Fatalf("renewed after the end: %v", p.Err)
	}
}

// A server tells what a statement has written before its commit fails.
func TestBusyQueueOfNotificationsGrantsNothing(t *testing.T) {
	t.Parallel()
	const writers, tries = 3, 20
	p := servers.Postgres(t)
	rawURL := newStore(t, p)
	a, b := open(t, rawURL), open(t, rawURL)
	var held []driver.Claim
	for i := range tries*writers + 1 {
		c, _ := drivertest.MustAcquire(t, a, mutex(fmt.Sprintf("held-%d", i)))
		w := mutex(c.Name)
		w.Patience = time.Minute
		refused(t, b, w)
		held = append(held, c)
	}
	free := busyQueue(t, p)
	defer free()
	var wg sync.WaitGroup
	release := func(c driver.Claim) {
		if err := a.Release(t.Context(), c); err != nil {
			t.Errorf("release %q: %v", c.Name, err)
		}
	}
	admin := psql(t, rawURL)
	waiting := func() int {
		return value[int](t, admin, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
	}
	// allWait has all writers wait at once, one after the other so that no two go
	// together. None does for more than a second: a busy machine may miss it.
	allWait := func() bool {
		for n := range writers {
			ended := make(chan struct{})
			c := held[0]
			held = held[1:]
			wg.Go(func() { // ends with its answer
				defer close(ended)
				release(c)
			})
			for waiting() <= n {
				select {
				case <-ended:
					return false
				default:
				}
			}
		}
		return true
	}
	for !allWait() {
		if len(held) < writers+1 {
			t.Fatalf("%d times the writers did not wait at once", tries)
		}
	}
	wg.Go(func() { release(held[0]) }) // in one statement with these; ends with its answer
	for i := range 20 {
		c := mutex(fmt.Sprintf("free-%d", i))
		wg.Go(func() { // ends with its answer
			if _, err := a.Acquire(t.Context(), c); err != nil {
				t.Errorf("acquire %q: %v", c.Name, err)
				return
			}
			if _, err := b.Acquire(t.Context(), mutex(c.Name)); !errors.Is(err, driver.ErrHeld) {
				t.Errorf("%q was granted, and another is told %v", c.Name, err)
			}
		})
	}
	wg.Wait()
}

// Nor does it hand anything to who waits in the same process.
func TestBusyQueueOfNotificationsHandsNothingOn(t *testing.T) {
	t.Parallel()
	p := servers.Postgres(t)
	rawURL := newStore(t, p)
	a, admin := open(t, rawURL), psql(t, rawURL)
	for range 2 { // by a writer, and by the caller itself, as soon as there is a session
		held, _ := drivertest.MustAcquire(t, a, mutex("x"))
		w := mutex("x")
		w.Patience = time.Minute
		refused(t, a, w)
		signals, stop, err := a.(driver.Watcher).Watch(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		refused(t, a, w)
		free := busyQueue(t, p)
		released := make(chan error, 1)
		go func() { released <- a.Release(t.Context(), held) }() // ends with its answer
		for sig := range signals {
			if sig.Grant == nil {
				continue
			}
			if n := value[int](t, admin, "SELECT count(*) FROM dibs.rows WHERE state = 2 AND token = $1", int64(sig.Grant.Token)); n != 1 {
				t.Error("a hand-over was told that has not happened")
			}
			break
		}
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		free()
		stop()
		got, _ := drivertest.MustAcquire(t, a, w)
		drivertest.MustRelease(t, a, got)
	}
}

// busyQueue has another program notify, which stops in the middle of its commit, until
// free is called.
func busyQueue(t *testing.T, p *servers.PostgresServer) (free func()) {
	t.Helper()
	foreign, admin := psql(t, p.URL("postgres")), psql(t, p.URL("postgres"))
	standbys := func(names string) {
		exec(t, admin, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
		exec(t, admin, "SELECT pg_reload_conf()")
	}
	exec(t, foreign, "CREATE TABLE IF NOT EXISTS written (n int)")
	exec(t, foreign, "SET synchronous_commit = on")
	standbys("nobody") // which its commit waits for
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	done := make(chan error, 1)
	go func() { // ends with free, or with the test's connection
		var err error
		for ctx.Err() == nil && err == nil { // at first it does not wait: the server is told in the background
			_, err = foreign.Exec(context.Background(), "INSERT INTO written VALUES (1); NOTIFY elsewhere")
		}
		done <- err
	}()
	until(t, "a commit that waits", func() bool {
		return value[bool](t, admin, "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	})
	stop()
	pid := int(foreign.PgConn().PID())
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	standbys("")
	until(t, "a server that waits for no standby", func() bool {
		return value[string](t, admin, "SHOW synchronous_standby_names") == ""
	})
	exec(t, admin, "SET synchronous_commit = on; INSERT INTO written VALUES (2)") // so it does
	return func() {
		t.Helper()
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
