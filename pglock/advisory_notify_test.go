package pglock_test

import (
	"context"
	"testing"

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

// busyQueue has another program notify, whose commit waits for a standby that is not
// there, until free is called.
func busyQueue(t *testing.T, p *servers.PostgresServer) (free func()) {
	t.Helper()
	foreign, admin := psql(t, p.URL("postgres")), psql(t, p.URL("postgres"))
	standbys := func(names string) {
		exec(t, admin, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'")
		exec(t, admin, "SELECT pg_reload_conf()")
	}
	exec(t, foreign, "CREATE TABLE written (n int)")
	exec(t, foreign, "SET synchronous_commit = on")
	standbys("nobody")
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
	return func() {
		t.Helper()
		stop()
		standbys("")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
