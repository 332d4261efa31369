package drivertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A Stage is what one law is tested on: a fresh storage and what the store
// promises.
type Stage struct {
	Storage
	Name   string       // the harness's
	Bubble bool         // the test runs in a synctest bubble: sleeping is free, and exact
	Facts  driver.Facts // the store's

	unfit map[string]string // the harness's

	mu    sync.Mutex                    // guards inner
	inner map[driver.Store]driver.Store // what Open returned, by what Link made of it
}

// newStage makes a storage of h for one test.
func newStage(t testing.TB, h Harness) *Stage {
	t.Helper()
	s := &Stage{Storage: h.New(t), Name: h.Name, Bubble: h.Bubble, unfit: h.Unfit}
	s.Facts = s.Open(t).Facts()
	return s
}

// Link opens a client behind a link that can fail.
func (s *Stage) Link(t testing.TB) (driver.Store, Link) {
	t.Helper()
	if s.Cut != nil {
		return s.Cut(t)
	}
	link, inner := NewLink(), s.Open(t)
	store := Wrap(inner, link.Around)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inner == nil {
		s.inner = make(map[driver.Store]driver.Store)
	}
	s.inner[store] = inner
	return store, link
}

// Crash ends a client as kill -9 of its process does.
func (s *Stage) Crash(c driver.Store) {
	if s.Kill == nil {
		return
	}
	s.mu.Lock()
	if inner := s.inner[c]; inner != nil {
		c = inner
	}
	s.mu.Unlock()
	s.Kill(c)
}

// TTL is a TTL that the store takes: d, or the store's shortest if d is shorter,
// rounded to its step.
func (s *Stage) TTL(d time.Duration) time.Duration {
	ttl, err := s.Facts.RoundTTL(min(max(d, s.Facts.MinTTL), s.Facts.MaxTTL))
	if err != nil {
		panic(err) // the store's own bounds are at odds with its step
	}
	return ttl
}

// Grace is how much later than by the store's clock something may happen: for a
// claim's end, at most its TTL plus Grace.
func (s *Stage) Grace() time.Duration { return s.Facts.Slack + s.Slack }

// Settle waits in a bubble until every goroutine is blocked; elsewhere it does
// nothing, so that a test that needs an outcome still has to wait for it.
func (s *Stage) Settle() {
	if s.Bubble {
		synctest.Wait()
	}
}

// Eventually waits until ok, which is asked again and again, and fails the test
// if it is not within d + Grace; in real time a machine that is leeway with other
// tests has a few seconds more.
func (s *Stage) Eventually(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	s.Settle()
	d += s.Grace()
	if !s.Bubble {
		d += leeway
	}
	for end := time.Now().Add(d); !ok(); time.Sleep(poll) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

const (
	poll   = 5 * time.Millisecond
	leeway = 5 * time.Second
)

var ids atomic.Uint64 // makes IDs distinct also if chance does not

// NewID makes the ID of an attempt.
func NewID() string { return fmt.Sprintf("%016x%08x", rand.Uint64(), ids.Add(1)) }

// Mutex is an exclusive claim with a fresh ID.
func Mutex(name string, ttl time.Duration) driver.Claim {
	return driver.Claim{Name: name, ID: NewID(), Units: 1, Capacity: 1, TTL: ttl}
}

// Reader is a shared claim with a fresh ID.
func Reader(name string, ttl time.Duration) driver.Claim {
	return driver.Claim{Name: name, ID: NewID(), Units: 1, Capacity: driver.Unlimited, TTL: ttl}
}

// Permit is a counted claim with a fresh ID.
func Permit(name string, units, capacity int, ttl time.Duration) driver.Claim {
	return driver.Claim{Name: name, ID: NewID(), Units: units, Capacity: capacity, TTL: ttl}
}

// MustAcquire asks for c, fails the test unless it is granted, and returns c
// with its token.
func MustAcquire(t testing.TB, s driver.Store, c driver.Claim) (driver.Claim, driver.Grant) {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	if err != nil {
		t.Fatalf("acquire %q: %v", c.Name, err)
	}
	if g.Token == 0 {
		t.Fatalf("acquire %q: granted with token 0", c.Name)
	}
	c.Token = g.Token
	return c, g
}

// MustRelease gives c back and fails the test unless it was held or in line.
func MustRelease(t testing.TB, s driver.Store, c driver.Claim) {
	t.Helper()
	if err := s.Release(t.Context(), c); err != nil {
		t.Fatalf("release %q: %v", c.Name, err)
	}
}

// RenewOne renews c alone. An error about the whole call is the proof's.
func RenewOne(ctx context.Context, s driver.Store, c driver.Claim) driver.Proof {
	ps, err := s.Renew(ctx, []driver.Claim{c})
	switch {
	case len(ps) == 1:
		return ps[0]
	case err == nil:
		err = fmt.Errorf("%d proofs for one claim and no error", len(ps))
	}
	return driver.Proof{Err: err}
}

// Power returns the optional power P of s, and skips the test if s lacks it.
func Power[P any](t testing.TB, s driver.Store) P {
	t.Helper()
	p, ok := s.(P)
	if !ok {
		t.Skipf("%s is no %T", s.Facts().Driver, (*P)(nil))
	}
	return p
}
