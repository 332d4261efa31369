package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// calls is how often the server was asked to run a script, and to publish.
func calls(t testing.TB, r *servers.RedisServer) (scripts, publishes int) {
	t.Helper()
	for line := range strings.Lines(do(t, r, "INFO", "commandstats").(string)) {
		kind, rest, _ := strings.Cut(line, ":")
		var n int
		if _, err := fmt.Sscanf(rest, "calls=%d,", &n); err != nil {
			continue
		}
		switch kind {
		case "cmdstat_evalsha", "cmdstat_eval":
			scripts += n
		case "cmdstat_publish":
			publishes += n
		}
	}
	return scripts, publishes
}

// connections is how many the server has, beside the one that asks.
func connections(t testing.TB, r *servers.RedisServer) int {
	t.Helper()
	return strings.Count(do(t, r, "CLIENT", "LIST").(string), "\n") - 1
}

// A thousand waiters of one process have one connection between them, and each
// hand-over concerns one of them alone: also if it all begins with a death.
func TestThousandWaitersAreNoHerd(t *testing.T) {
	for how, ttl := range map[string]time.Duration{"release": time.Hour, "expiry": 2 * time.Second} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			const waiters = 1000
			r := servers.Redis(t)
			holder := open(t, r.Addr(), "")
			m, _ := drivertest.MustAcquire(t, holder, drivertest.Mutex("name", ttl))
			c := lockingClient(t, r, dibs.Settings{TTL: time.Minute, Patience: time.Minute})
			var all sync.WaitGroup
			var took atomic.Int64
			for range waiters {
				all.Go(func() { // ends when it has had its turn
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					l, err := c.Mutex("name").Lock(ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if l.TookOver() {
						took.Add(1)
					}
					if err := l.Release(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			if how == "release" {
				soon(t, "all wait", func() bool { return do(t, r, "LLEN", "dibs:{name}:l") == int64(waiters) })
			}
			soon(t, "the holder's client and the waiters' have a connection each", func() bool { return connections(t, r) == 2 })
			scripts, publishes := calls(t, r)
			began := time.Now()
			if how == "release" {
				drivertest.MustRelease(t, holder, m)
			}
			all.Wait()
			s, p := calls(t, r)
			s, p = s-scripts, p-publishes
			// Beside what a turn takes, each may poll once in three quarters of a second.
			if polls := 1 + int(2*time.Since(began)/time.Second); s > waiters*(4+polls) {
				t.Errorf("%d scripts for %d hand-overs", s, waiters)
			}
			if p > waiters+waiters/10 {
				t.Errorf("%d signals for %d hand-overs", p, waiters)
			}
			if want := map[string]int64{"release": 0, "expiry": 1}[how]; took.Load() != want {
				t.Errorf("%d were told of a death, want %d", took.Load(), want)
			}
			t.Logf("%.2f scripts and %.2f signals a hand-over", float64(s)/waiters, float64(p)/waiters)
			soon(t, "nothing but the mark is left", func() bool { return do(t, r, "DBSIZE") == int64(1) })
		})
	}
}

// lockingClient opens a whole client, which is closed when the test ends.
func lockingClient(t testing.TB, r *servers.RedisServer, set dibs.Settings, hooks ...dibs.Hooks) *dibs.Client {
	t.Helper()
	c, err := dibs.Open(t.Context(), "redis://"+r.Addr(), &dibs.Options{Settings: set, Hooks: dibs.JoinHooks(hooks...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// What was asked for when a wait ended may land for a TTL yet: not here.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// A head of the line that is dead is handed the name too: it costs a hand-over's
// TTL and one poll, and not the TTL that it asked for.
func TestDeadHeadCostsAHandOver(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	s := open(t, r.Addr(), "")
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
	dead := drivertest.Mutex("name", time.Hour)
	dead.Patience = time.Hour
	if _, err := s.Acquire(t.Context(), dead); !errors.Is(err, driver.ErrHeld) {
		t.Fatal(err)
	}
	c := lockingClient(t, r, dibs.Settings{TTL: time.Hour, Patience: time.Hour})
	got := make(chan *dibs.Lease, 1)
	go func() { // ends with the turn
		l, err := c.Mutex("name").Lock(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	soon(t, "both wait", func() bool { return do(t, r, "LLEN", "dibs:{name}:l") == int64(2) })
	drivertest.MustRelease(t, s, m)
	select {
	case l := <-got:
		if !l.TookOver() {
			t.Error("the death of the head was not told")
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("the next one waits behind a dead head")
	}
}

// TestTortureOfCancelAndHandOver has a waiter give up at the very moment when it
// is handed the name, or a little before or after: 10,000 times if a long torture
// was asked for. Either it has the name, or it is as if it had never been there:
// the next one has it at once, and in the end nothing is left on the server. All
// times to live are an hour, so that nothing goes away by itself.
func TestTortureOfCancelAndHandOver(t *testing.T) {
	t.Parallel()
	races := 400
	if os.Getenv("DIBS_TORTURE_FOR") != "" {
		races = 10_000
	}
	r := servers.Redis(t)
	hour := dibs.Settings{TTL: time.Hour, Patience: time.Hour}
	var won, all, asks atomic.Int64
	holders := lockingClient(t, r, hour)
	waiters := lockingClient(t, r, hour, dibs.Hooks{Requested: func(i dibs.RequestInfo) {
		if i.Op == "acquire" {
			asks.Add(1)
		}
	}})
	var racers sync.WaitGroup
	for lane := range 8 {
		racers.Go(func() { // ends with its share
			delay := 100 * time.Microsecond // is made such that either side wins about as often
			for i := lane; i < races && !t.Failed(); i += 8 {
				if raceOnce(t, r, holders, waiters, fmt.Sprint("race/", i), delay) {
					won.Add(1)
					delay -= delay / 8
				} else {
					delay += delay/8 + time.Microsecond
				}
				all.Add(1)
			}
		})
	}
	racers.Wait()
	soon(t, "nothing but the mark is left", func() bool { return do(t, r, "DBSIZE") == int64(1) })
	t.Logf("of %d waiters that gave up, %d had been handed the name before", all.Load(), won.Load())
	// A waiter asks, and perhaps once more when it has subscribed. Who misses its
	// signal asks again after a second or so.
	if n, most := asks.Load(), 4*all.Load()+all.Load()/4; n > most {
		t.Errorf("%d asks in %d races, want %d at most: signals were lost", n, all.Load(), most)
	}
	if won.Load() == 0 || won.Load() == all.Load() {
		t.Error("there was no race")
	}
}

// raceOnce has the first of two waiters give up delay after its holder began to
// release, and tells whether it was granted the name all the same.
func raceOnce(t *testing.T, r *servers.RedisServer, holders, waiters *dibs.Client, name string, delay time.Duration) (won bool) {
	held, err := holders.Mutex(name).Lock(t.Context())
	if err != nil {
		t.Error(err)
		return false
	}
	type turn struct {
		lease *dibs.Lease
		err   error
	}
	var turns [2]chan turn
	first, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	second, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, ctx := range []context.Context{first, second} {
		turns[i] = make(chan turn, 1)
		go func() { // ends with its turn
			l, err := waiters.Mutex(name).Lock(ctx)
			turns[i] <- turn{l, err}
		}()
		soon(t, "it waits", func() bool { return do(t, r, "LLEN", "dibs:{"+name+"}:l") == int64(i+1) })
	}
	gaveUp := make(chan struct{})
	go func() { // ends after delay
		time.Sleep(delay)
		giveUp()
		close(gaveUp)
	}()
	if err := held.Release(t.Context()); err != nil {
		t.Errorf("%s: release: %v", name, err)
	}
	<-gaveUp
	switch one := <-turns[0]; {
	case one.err == nil:
		won = true
		if err := one.lease.Release(t.Context()); err != nil {
			t.Errorf("%s: release by the first: %v", name, err)
		}
	case !errors.Is(one.err, context.Canceled):
		t.Errorf("%s: the first: %v", name, one.err)
	}
	two := <-turns[1]
	if two.err != nil {
		t.Errorf("%s: the second was not let in: %v", name, two.err)
		return won
	}
	if two.lease.TookOver() {
		t.Errorf("%s: a hand-over to the first had lapsed", name)
	}
	if err := two.lease.Release(t.Context()); err != nil {
		t.Errorf("%s: release by the second: %v", name, err)
	}
	return won
}
