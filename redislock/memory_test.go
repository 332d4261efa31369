package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// fill writes keys of another program until memory is out, or a lot was written.
func fill(t *testing.T, r *servers.RedisServer, args ...any) {
	t.Helper()
	c, err := r.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	big := strings.Repeat("x", 10_000)
	for i := range 1000 {
		if _, err := c.Do(append([]any{"SET", "other" + strings.Repeat("y", i), big}, args...)...); err != nil {
			if !strings.HasPrefix(err.Error(), "redis: OOM") {
				t.Fatal(err)
			}
			return
		}
	}
}

// When memory is out, what holds can be renewed, handed over and given back, and
// what would add is refused in words, as nothing that was applied.
func TestOutOfMemory(t *testing.T) {
	r := servers.Redis(t, servers.RedisArgs("--maxmemory", "6mb", "--maxmemory-policy", "noeviction"))
	s := open(t, r.Addr(), "journal=on")
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	w := drivertest.Mutex("name", time.Minute)
	w.Patience = time.Minute
	if _, err := s.Acquire(t.Context(), w); !errors.Is(err, driver.ErrHeld) {
		t.Fatal(err)
	}
	fill(t, r)
	for range 10 {
		if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
			t.Fatalf("renew: %v", p.Err)
		}
		if p := drivertest.RenewOne(t.Context(), s, w); !errors.Is(p.Err, driver.ErrHeld) {
			t.Fatalf("refresh: %v", p.Err)
		}
	}
	other := drivertest.Mutex("other", time.Minute)
	if _, err := s.Acquire(t.Context(), other); driver.Certain(err) || !strings.Contains(err.Error(), "memory is full") {
		t.Errorf("acquire: %v", err)
	}
	drivertest.MustRelease(t, s, m)
	p := drivertest.RenewOne(t.Context(), s, w)
	if p.Err != nil || p.Grant == nil {
		t.Fatalf("the place was not handed the name: %+v", p)
	}
	w.Token = p.Grant.Token
	drivertest.MustRelease(t, s, w)
	var not *driver.NotHeldError
	if err := s.Release(t.Context(), other); !errors.As(err, &not) {
		t.Errorf("the ask that was refused for want of memory left %v", err)
	}
	do(t, r, "CONFIG", "SET", "maxmemory", "0")
	drivertest.MustAcquire(t, s, other)
}

// A server without memory refuses asks and hands over: who waits gets the name, and
// can hold it and give it back.
func TestHandOverOutOfMemory(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	held, refused := make(chan struct{}, 100), make(chan struct{}, 100)
	var clients [2]*dibs.Client
	for i := range clients {
		c, err := dibs.Open(t.Context(), "redis://"+r.Addr(), &dibs.Options{
			Settings: dibs.Settings{TTL: 5 * time.Second},
			Hooks: dibs.Hooks{
				Waiting:  func(context.Context, dibs.AcquireInfo, *dibs.HeldError) { held <- struct{}{} },
				Retrying: func(context.Context, dibs.AcquireInfo, error) { refused <- struct{}{} },
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		clients[i] = c
	}
	first, err := clients[0].Mutex("name").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	locked := make(chan error)
	go func() { // ends with its Lock
		lease, err := clients[1].Mutex("name").Lock(t.Context())
		if err == nil {
			err = lease.Validate(t.Context())
		}
		if err == nil {
			err = lease.Release(t.Context())
		}
		locked <- err
	}()
	<-held
	do(t, r, "CONFIG", "SET", "maxmemory", "1")
	<-refused
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-locked; err != nil {
		t.Errorf("who waited: %v", err)
	}
	do(t, r, "CONFIG", "SET", "maxmemory", "0")
}

// A server that evicts loses locks, under every such policy, and their holders
// are told so; tokens go on growing. To leave nothing to luck, all that may be
// evicted is: there is memory for nothing.
func TestEvictionIsALossThatIsNoticed(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		for _, layout := range []string{"line", "plain"} {
			t.Run(policy+", "+layout, func(t *testing.T) {
				t.Parallel()
				r := servers.Redis(t, servers.RedisArgs("--maxmemory-policy", policy))
				s := open(t, r.Addr(), "layout="+layout)
				m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
				w := drivertest.Mutex("name", time.Hour)
				w.Patience = time.Hour
				if _, err := s.Acquire(t.Context(), w); !errors.Is(err, driver.ErrHeld) {
					t.Fatal(err)
				}
				do(t, r, "CONFIG", "SET", "maxmemory", "1")
				left := 0 // the mark has no time to live, so that volatile-* spare it
				if strings.HasPrefix(policy, "volatile") {
					left = 1
				}
				soon(t, "all is evicted", func() bool { return do(t, r, "DBSIZE") == int64(left) })
				do(t, r, "CONFIG", "SET", "maxmemory", "0")
				var not *driver.NotHeldError
				if p := drivertest.RenewOne(t.Context(), s, m); !errors.As(p.Err, &not) {
					t.Errorf("renew: %v", p.Err)
				}
				g, err := s.Acquire(t.Context(), w)
				if err != nil || g.Token <= m.Token {
					t.Errorf("after token %d: %+v, %v", m.Token, g, err)
				}
			})
		}
	}
}

// What is left of a line when part of it was evicted never keeps a waiter out.
func TestHalfALineIsTakenAnew(t *testing.T) {
	for _, lost := range []string{"dibs:{name}", "dibs:{name}:l", "dibs:{name}:p"} {
		t.Run(lost, func(t *testing.T) {
			t.Parallel()
			r := servers.Redis(t)
			s := open(t, r.Addr(), "")
			m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
			var ws []driver.Claim
			for range 4 {
				w := drivertest.Mutex("name", time.Minute)
				w.Patience = time.Minute
				s.Acquire(t.Context(), w)
				ws = append(ws, w)
			}
			do(t, r, "DEL", lost)
			if lost == "dibs:{name}" {
				m, _ = drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
			}
			for _, w := range ws {
				var held *driver.HeldError
				if _, err := s.Acquire(t.Context(), w); !errors.As(err, &held) || held.Place == 0 {
					t.Fatalf("asked again: %v", err)
				}
			}
			for _, w := range ws {
				drivertest.MustRelease(t, s, m)
				p := drivertest.RenewOne(t.Context(), s, w)
				if p.Err != nil || p.Grant == nil {
					t.Fatalf("not handed over in turn: %+v", p)
				}
				m = w
				m.Token = p.Grant.Token
			}
			drivertest.MustRelease(t, s, m)
			if ks := do(t, r, "KEYS", "*").([]any); len(ks) != 1 {
				t.Errorf("left: %q", ks)
			}
		})
	}
}
