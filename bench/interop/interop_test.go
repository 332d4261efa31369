// Package interop_test locks in Redis' plain layout beside programs that are not
// dibs. It stands in this module so that their libraries are in nobody's
// dependency graph.
package interop_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	_ "github.com/dibslock/dibs/redislock"
)

func TestMain(m *testing.M) { servers.Main(m) }

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

func plainURL(r *servers.RedisServer) string { return "redis://" + r.Addr() + "?layout=plain" }

// Each of the others keeps us out, and we it, until a lock is released or expires.
func TestOtherProgramsExcludeUsAndWeThem(t *testing.T) {
	t.Parallel()
	r := servers.SharedRedis(t)
	for what, join := range others {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			o := join(t, r)
			s, err := driver.Open(t.Context(), plainURL(r))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			name := "orders/42/" + what
			ours := func() (driver.Claim, error) {
				m := drivertest.Mutex(name, 2*time.Second)
				g, err := s.Acquire(t.Context(), m)
				m.Token = g.Token
				return m, err
			}
			refused := func(what string) *driver.HeldError {
				t.Helper()
				var held *driver.HeldError
				if _, err := ours(); !errors.As(err, &held) {
					t.Fatalf("%s: %v, want a refusal", what, err)
				}
				return held
			}

			if !o.acquire(name, time.Minute) {
				t.Fatal("the other can't lock a free name")
			}
			held := refused("held by the other")
			if held.RetryAfter <= 0 || held.RetryAfter > time.Minute+time.Second || held.Holder == nil {
				t.Errorf("refused with %+v", held)
			}
			if !o.extend(name, 5*time.Minute) {
				t.Error("the other can't extend its own lock")
			}
			if held := refused("extended by the other"); held.RetryAfter <= 2*time.Minute {
				t.Errorf("refused with %+v", held)
			}
			if !o.release(name) {
				t.Error("the other can't release its own lock")
			}

			m, err := ours()
			if err != nil {
				t.Fatalf("the other has released it: %v", err)
			}
			if o.acquire(name, time.Minute) || o.extend(name, time.Minute) || o.release(name) {
				t.Error("the other got at our lock")
			}
			if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
				t.Errorf("renew: %v", p.Err)
			}
			drivertest.MustRelease(t, s, m)
			if !o.acquire(name, time.Second) {
				t.Fatal("we have released it, and the other can't lock it")
			}

			// By expiry, both ways.
			refused("held by the other for a second")
			var next driver.Claim
			soon(t, "the other's lock expires", func() bool { next, err = ours(); return err == nil })
			if next.Token <= m.Token {
				t.Errorf("token %d after %d", next.Token, m.Token)
			}
			if o.extend(name, time.Minute) || o.release(name) {
				t.Error("the other got at our lock by the one that it has lost")
			}
			soon(t, "our lock expires", func() bool { return o.acquire(name, time.Minute) })
			var not *driver.NotHeldError
			if p := drivertest.RenewOne(t.Context(), s, next); !errors.As(p.Err, &not) {
				t.Errorf("renew of a lock that is another's by now: %v", p.Err)
			}
			if err := s.Release(t.Context(), next); !errors.As(err, &not) {
				t.Errorf("release of a lock that is another's by now: %v", err)
			}
			refused("the other still has it")
		})
	}
}

// All at once fight for one name, and no two are ever inside.
func TestNoTwoAreInside(t *testing.T) {
	t.Parallel()
	r := servers.SharedRedis(t)
	const (
		name  = "the-one"
		turns = 15
	)
	var (
		inside  atomic.Int64
		players sync.WaitGroup
		got     atomic.Int64
	)
	enter := func(who string) {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%s is inside with %d others", who, n-1)
		}
		time.Sleep(time.Millisecond) // so that others come by
		inside.Add(-1)
		got.Add(1)
	}
	for what, join := range others {
		o := join(t, r)
		players.Go(func() { // ends with its turns
			for range turns {
				for end := time.Now().Add(patience); !o.acquire(name, 10*time.Second); time.Sleep(2 * time.Millisecond) {
					if t.Failed() || time.Now().After(end) {
						t.Errorf("%s was kept out", what)
						return
					}
				}
				enter(what)
				if !o.release(name) {
					t.Errorf("%s has lost its lock", what)
				}
			}
		})
	}
	c, err := dibs.Open(t.Context(), plainURL(r), &dibs.Options{Settings: dibs.Settings{TTL: 10 * time.Second, Poll: 5 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	for range 2 {
		players.Go(func() { // ends with its turns
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for range turns {
				err := c.Mutex(name).Do(ctx, func(context.Context) error { enter("dibs"); return nil })
				if err != nil {
					t.Errorf("dibs: %v", err)
					return
				}
			}
		})
	}
	players.Wait()
	if want := int64((len(others) + 2) * turns); got.Load() != want {
		t.Errorf("%d turns were had, want %d", got.Load(), want)
	}
}
