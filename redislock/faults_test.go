package redislock_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// patience is how long a test waits for what must happen.
const patience = time.Minute

// soon asks again until ok.
func soon(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

func TestScriptFlushIsNotNoticed(t *testing.T) {
	for _, layout := range []string{"line", "plain"} {
		r := servers.Redis(t)
		s := open(t, r.Addr(), "layout="+layout)
		flush := func() { do(t, r, "SCRIPT", "FLUSH") }
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
		flush()
		if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
			t.Errorf("renew: %v", p.Err)
		}
		flush()
		for _, err := range s.(driver.Lister).List(t.Context(), "") {
			if err != nil {
				t.Errorf("list: %v", err)
			}
		}
		flush()
		_, err := s.(driver.Records).Put(t.Context(), driver.Record{Key: "k", Retention: time.Minute})
		if err != nil {
			t.Errorf("put: %v", err)
		}
		flush()
		drivertest.MustRelease(t, s, m)
		flush()
		drivertest.MustAcquire(t, s, m)
	}
}

// A waiter whose connection was killed is told to ask again, and hears of a
// hand-over on the next connection.
func TestKilledConnectionsComeBack(t *testing.T) {
	r := servers.Redis(t)
	a, b := open(t, r.Addr(), ""), open(t, r.Addr(), "")
	m, _ := drivertest.MustAcquire(t, a, drivertest.Mutex("name", time.Minute))
	w := drivertest.Mutex("name", time.Minute)
	w.Patience = time.Minute
	signals, stop, err := b.(driver.Watcher).Watch(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	var held *driver.HeldError
	if _, err := b.Acquire(t.Context(), w); !errors.As(err, &held) {
		t.Fatal(err)
	}
	for range 3 {
		do(t, r, "CLIENT", "KILL", "SKIPME", "yes", "TYPE", "normal")
		do(t, r, "CLIENT", "KILL", "SKIPME", "yes", "TYPE", "pubsub")
		if s := <-signals; s != (driver.Signal{}) {
			t.Fatalf("after a lost connection: %+v", s)
		}
		soon(t, "a call gets through", func() bool { return drivertest.RenewOne(t.Context(), a, m).Err == nil })
	}
	drivertest.MustRelease(t, a, m)
	s := <-signals
	if s.Place != held.Place || s.Grant == nil || s.Grant.Token <= m.Token {
		t.Fatalf("after the release: %+v", s)
	}
}

// However the server hangs, and however many calls hang with it, each returns
// when its ctx ends, by deadline or by hand, and the client works again after.
func TestHungServerHoldsNoCall(t *testing.T) {
	for what, hang := range map[string]func(t *testing.T, r *servers.RedisServer) (resume func()){
		"CLIENT PAUSE": func(t *testing.T, r *servers.RedisServer) func() {
			do(t, r, "CLIENT", "PAUSE", "3000", "ALL")
			return func() {}
		},
		"DEBUG SLEEP": func(_ *testing.T, r *servers.RedisServer) func() {
			c, err := r.Dial()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Send("DEBUG", "SLEEP", "3"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			return func() { c.Receive(); c.Close() }
		},
		"SIGSTOP": func(t *testing.T, r *servers.RedisServer) func() {
			if err := r.Pause(); err != nil {
				t.Fatal(err)
			}
			return func() { r.Resume() }
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := servers.Redis(t, servers.RedisArgs("--enable-debug-command", "yes"))
			s := open(t, r.Addr(), "")
			m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
			resume := hang(t, r)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			byHand, end := context.WithCancel(t.Context())
			time.AfterFunc(300*time.Millisecond, end)
			start := time.Now()
			var wg sync.WaitGroup
			for i := range 3 * redislock.MaxUnder {
				wg.Go(func() { // ends with its ctx
					ctx := ctx
					if i%2 == 0 {
						ctx = byHand
					}
					if err := drivertest.RenewOne(ctx, s, m).Err; driver.Certain(err) {
						t.Errorf("a call that got no answer: %v", err)
					}
				})
			}
			wg.Wait()
			if took := time.Since(start); took > 2500*time.Millisecond {
				t.Errorf("calls returned %v after their ctx", took-300*time.Millisecond)
			}
			resume()
			soon(t, "a call gets through", func() bool { return drivertest.RenewOne(t.Context(), s, m).Err == nil })
		})
	}
}

func TestServerThatIsDownIsUnknown(t *testing.T) {
	r := servers.Redis(t)
	s := open(t, r.Addr(), "")
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 20 { // each fails by itself, with no ctx that would end it
		if _, err := s.Acquire(context.Background(), m); driver.Certain(err) {
			t.Fatalf("acquire: %v", err)
		}
	}
	if _, err := driver.Open(t.Context(), "redis://:secret@"+r.Addr()); err == nil || driver.Certain(err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("open: %v", err)
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	var g driver.Grant
	soon(t, "a call gets through", func() (ok bool) {
		var err error
		g, err = s.Acquire(t.Context(), m)
		return err == nil
	})
	if g.Token <= m.Token {
		t.Errorf("the server forgot everything, and token %d came after %d", g.Token, m.Token)
	}
}

// A server that writes all down keeps claims, places and the mark.
func TestDurableServerRemembers(t *testing.T) {
	r := servers.Redis(t, servers.Durable())
	s := open(t, r.Addr(), "")
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
	w := drivertest.Mutex("name", time.Hour)
	w.Patience = time.Hour
	_, err := s.Acquire(t.Context(), w)
	var before, after *driver.HeldError
	if !errors.As(err, &before) {
		t.Fatal(err)
	}
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
	soon(t, "the claim is proved", func() bool { return drivertest.RenewOne(t.Context(), s, m).Err == nil })
	if _, err = s.Acquire(t.Context(), w); !errors.As(err, &after) || after.Place != before.Place {
		t.Errorf("place %d became %v", before.Place, err)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	r := servers.Redis(t)
	before := runtime.NumGoroutine()
	for range 5 {
		s := open(t, r.Addr(), "")
		m := drivertest.Mutex("name", time.Hour)
		if _, _, err := s.(driver.Watcher).Watch(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if _, err := s.(driver.LossFeed).Losses(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Acquire(t.Context(), m)
		s.Release(t.Context(), m)
		s.Close()
	}
	soon(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	soon(t, "the connections end", func() bool { return connections(t, r) == 0 })
}
