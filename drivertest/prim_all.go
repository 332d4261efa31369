package drivertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var allLaws = []law{
	{number: 45, name: "SeveralNamesAreOne", test: l45Core.run},
	{number: 45, name: "NobodyDeadlocks", test: noDeadlock},
}

// unbatched is a store that does not grant several names at once.
type unbatched struct {
	driver.Store
	driver.Watcher
}

// withoutBatcher takes the power away from a store.
func withoutBatcher(s driver.Store) driver.Store {
	if w, ok := s.(driver.Watcher); ok {
		return unbatched{s, w}
	}
	return bare{s}
}

// unbatched is s without the power.
func (s *Stage) unbatched() *Stage {
	less := &Stage{Storage: s.Storage, Name: s.Name, Bubble: s.Bubble, Facts: s.Facts}
	less.Open = func(t testing.TB) driver.Store { return withoutBatcher(s.Open(t)) }
	return less
}

// both runs test with the store as it is and, if it is a Batcher, without that.
func both(test func(t *testing.T, s *Stage)) func(t *testing.T, s *Stage) {
	return func(t *testing.T, s *Stage) {
		test(t, s)
		if is[driver.Batcher](s.Open(t)) {
			test(t, s.unbatched())
		}
	}
}

// three makes three names, in their order.
func three() []string {
	base := fresh()
	return []string{base + "/1", base + "/2", base + "/3"}
}

// mutexes are a lock of each name, the last first.
func mutexes(c *dibs.Client, names []string) *dibs.Locker {
	var ls []*dibs.Locker
	for _, name := range names {
		ls = append([]*dibs.Locker{c.Mutex(name)}, ls...)
	}
	return c.All(ls...)
}

// revokes is a rig whose other client can take claims away, or the part is
// skipped.
func revokes(t testing.TB, s *Stage, set dibs.Settings) *rig {
	t.Helper()
	if s.Facts.Waived(22) != "" || !is[driver.Revoker](s.Open(t)) || !is[driver.Lister](s.Open(t)) {
		s.skip(t, "nothing can be taken away")
	}
	return newRig(t, s, set)
}

// takeAway revokes whatever holds name, at once.
func (r *rig) takeAway(t testing.TB, name string) {
	t.Helper()
	revoked := false
	for _, h := range r.holders(t, name) {
		if h.Name == name && h.Token != 0 {
			revoke(t, r.other, driver.Claim{Name: name, Token: h.Token}, true)
			revoked = true
		}
	}
	if !revoked {
		t.Fatalf("nobody holds %q", name)
	}
}

var l45Core = parts{
	{"AllAreHeld", both(func(t *testing.T, s *Stage) {
		r, names := newRig(t, s, dibs.Settings{}), three()
		for _, lock := range []func(*dibs.Locker, context.Context) (*dibs.Lease, error){(*dibs.Locker).TryLock, (*dibs.Locker).Lock} {
			l, err := lock(mutexes(r.client, names), t.Context())
			if err != nil {
				t.Fatal(err)
			}
			fences := l.Fences()
			if keys := slices.Sorted(maps.Keys(fences)); !slices.Equal(keys, names) || l.Fence() != 0 {
				t.Errorf("fences %v, fence %d", fences, l.Fence())
			}
			for _, name := range names {
				r.isHeld(t, name)
				if fences[name] == 0 && s.Facts.Fencing != driver.NoFencing {
					t.Errorf("%q has no fence", name)
				}
			}
			if err := errors.Join(l.Check(), l.Validate(t.Context()), l.Context().Err()); err != nil {
				t.Errorf("while it is held: %v", err)
			}
			if left := l.Remaining(); left <= 0 || left > r.ttl {
				t.Errorf("%v remain of %v", left, r.ttl)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Errorf("release: %v", err)
			}
			for _, name := range names {
				r.isFree(t, name)
			}
			if err := l.Release(t.Context()); !errors.Is(err, dibs.ErrReleased) || !errors.Is(l.Check(), dibs.ErrReleased) {
				t.Errorf("released again: %v; check: %v", err, l.Check())
			}
		}
	})},
	{"TheyAreRenewed", both(func(t *testing.T, s *Stage) {
		r, names := newRig(t, s, dibs.Settings{}), three()
		l, err := mutexes(r.client, names).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * r.ttl)
		if err := l.Check(); err != nil {
			t.Fatalf("after two TTLs: %v", err)
		}
		for _, name := range names {
			r.isHeld(t, name)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})},
	{"OrNone", both(func(t *testing.T, s *Stage) {
		keep := s.long()
		if s.Facts.Waived(18) != "" {
			keep = dibs.Off
		}
		r := newRig(t, s, dibs.Settings{Keep: keep})
		for i := range 3 { // whichever is in the way
			names := three()
			m, _ := MustAcquire(t, r.other, Mutex(names[i], s.long()))
			_, err := mutexes(r.client, names).TryLock(t.Context())
			var held *dibs.HeldError
			if !errors.As(err, &held) || held.Name != names[i] {
				t.Fatalf("TryLock: %v, want a *HeldError of %q", err, names[i])
			}
			ctx, cancel := context.WithTimeout(t.Context(), s.tick()/4)
			_, err = mutexes(r.client, names).Lock(ctx)
			cancel()
			var wait *dibs.WaitError
			if !errors.As(err, &wait) || wait.Name != names[i] || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Lock: %v, want a *WaitError of %q", err, names[i])
			}
			for j, name := range names {
				if j != i {
					r.isFree(t, name)
				}
			}
			MustRelease(t, r.other, m)
		}
	})},
	{"NobodySeesAPart", func(t *testing.T, s *Stage) {
		if !is[driver.Batcher](s.Open(t)) {
			s.skip(t, "the store grants one name at a time")
		}
		r, names := newRig(t, s, dibs.Settings{}), three()
		MustAcquire(t, r.other, Mutex(names[2], s.long()))
		for range 5 {
			if _, err := mutexes(r.client, names).TryLock(t.Context()); !errors.Is(err, dibs.ErrHeld) {
				t.Fatalf("TryLock: %v, want ErrHeld", err)
			}
		}
		if n := len(r.calls.Calls(OpAcquire)); n != 0 || len(r.calls.Calls(OpAcquireAll)) != 5 {
			t.Errorf("%d names were asked for one by one", n)
		}
	}},
	{"InTheirOrder", func(t *testing.T, s *Stage) {
		r, names := newRig(t, s.unbatched(), dibs.Settings{}), three()
		l, err := mutexes(r.client, names).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range r.calls.Calls(OpAcquire) {
			got = append(got, c.Claims[0].Name)
		}
		if !slices.Equal(got, names) {
			t.Errorf("asked for %q, want %q", got, names)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		// And holds no place on a name before it has the earlier ones.
		m, _ := MustAcquire(t, r.other, Mutex(names[0], s.long()))
		MustAcquire(t, r.other, Mutex(names[2], s.long()))
		ctx, cancel := context.WithTimeout(t.Context(), s.tick()/4)
		defer cancel()
		if _, err := mutexes(r.client, names).Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Lock: %v", err)
		}
		for _, c := range r.calls.Calls(OpAcquire)[len(names):] {
			if c.Claims[0].Name != names[0] {
				t.Errorf("asked for %q while %q was held by another", c.Claims[0].Name, names[0])
			}
		}
		MustRelease(t, r.other, m)
	}},
	{"ALossEndsAll", both(func(t *testing.T, s *Stage) {
		r, names := revokes(t, s, dibs.Settings{}), three()
		l, err := mutexes(r.client, names).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		bound, stop := l.Bind(t.Context())
		defer stop()
		r.takeAway(t, names[1])
		if !done(bound, 2*r.ttl+r.Grace()) {
			t.Fatal("the context does not end")
		}
		var lost *dibs.LostError
		if err := context.Cause(bound); !errors.As(err, &lost) || lost.Name != names[1] {
			t.Errorf("cause %v, want the loss of %q", err, names[1])
		}
		if err := l.Check(); !errors.Is(err, dibs.ErrLost) {
			t.Errorf("check: %v", err)
		}
		if err := l.Release(t.Context()); !errors.Is(err, dibs.ErrLost) {
			t.Errorf("release: %v", err)
		}
		for _, name := range names {
			r.isFree(t, name)
		}
	})},
	{"WhatIsLostEndsByItsTTL", both(func(t *testing.T, s *Stage) {
		r, names := revokes(t, s, dibs.Settings{}), three()
		s.byTTL(t)
		l, err := mutexes(r.client, names).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.takeAway(t, names[0])
		if !done(l.Context(), 2*r.ttl+r.Grace()) {
			t.Fatal("the context does not end")
		}
		time.Sleep(r.ttl + r.Grace())
		for _, name := range names { // though nobody released it
			r.isFree(t, name)
		}
	})},
	{"ALossEndsTheWait", func(t *testing.T, s *Stage) {
		r, names := revokes(t, s, dibs.Settings{}), three()
		MustAcquire(t, r.other, Mutex(names[2], s.long()))
		after(t, r.ttl/2, func() { r.takeAway(t, names[0]) })
		_, err := mutexes(r.client, names).Lock(bounded(t, 10*r.ttl))
		var lost *dibs.LostError
		var wait *dibs.WaitError
		if !errors.As(err, &lost) || lost.Name != names[0] || errors.As(err, &wait) {
			t.Errorf("Lock: %v, want the loss of %q", err, names[0])
		}
		r.isFree(t, names[0])
		r.isFree(t, names[1])
		r.isHeld(t, names[2]) // it did not wait for that one
	}},
	{"ANameTwice", both(func(t *testing.T, s *Stage) {
		r, name, other := newRig(t, s, dibs.Settings{}), fresh(), fresh()
		c := r.client
		take := func(l *dibs.Locker) *dibs.Lease {
			t.Helper()
			lease, err := l.TryLock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return lease
		}
		drop := func(l *dibs.Lease) {
			t.Helper()
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		drop(take(c.All(c.Mutex(name), c.Mutex(name))))
		if s.has(driver.Shared) {
			l := take(c.All(c.Reader(name), c.Mutex(other), c.Writer(name)))
			refused(t, r.other, Reader(name, r.ttl))
			drop(l)
			l = take(c.All(c.Reader(name), c.Reader(name)))
			m, _ := MustAcquire(t, r.other, Reader(name, r.ttl))
			MustRelease(t, r.other, m)
			drop(l)
		}
		if s.has(driver.Counted) {
			l := take(c.All(c.Semaphore(name, 4, 1), c.Mutex(other), c.Semaphore(name, 4, 2)))
			refused(t, r.other, Permit(name, 2, 4, r.ttl))
			m, _ := MustAcquire(t, r.other, Permit(name, 1, 4, r.ttl))
			MustRelease(t, r.other, m)
			drop(l)
		}
	})},
	{"WhatMakesNoSense", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		c, elsewhere := r.client, newRig(t, s, dibs.Settings{}).client
		for what, l := range map[string]*dibs.Locker{
			"nothing":            c.All(),
			"too many units":     c.All(c.Semaphore("a", 3, 2), c.Semaphore("a", 3, 2)),
			"two capacities":     c.All(c.Semaphore("a", 3, 1), c.Semaphore("a", 4, 1)),
			"shared and counted": c.All(c.Reader("a"), c.Semaphore("a", 3, 1)),
			"another store's":    c.All(c.Mutex("a"), elsewhere.Mutex("b")),
			"a bad name":         c.All(c.Mutex("a"), c.Mutex("\n")),
			"a bad name in it":   c.All(c.Mutex("a"), c.All(c.Mutex("b"), c.Mutex(""))),
		} {
			for _, lock := range []func(*dibs.Locker, context.Context) (*dibs.Lease, error){(*dibs.Locker).TryLock, (*dibs.Locker).Lock} {
				if _, err := lock(l, t.Context()); !errors.Is(err, dibs.ErrRejected) {
					t.Errorf("%s: %v, want it rejected", what, err)
				}
			}
		}
		if n := len(r.calls.Calls(OpAcquire)) + len(r.calls.Calls(OpAcquireAll)); n != 0 {
			t.Errorf("%d calls were made", n)
		}
	}},
	{"ALostAnswerLeavesNothing", both(func(t *testing.T, s *Stage) {
		r, names := newRig(t, s, dibs.Settings{}), three()
		cut := atomic.Bool{}
		r.link.Pick(func(c Call) (Fault, bool) {
			return CutAfter, (c.Op == OpAcquireAll || c.Op == OpAcquire) && cut.CompareAndSwap(false, true)
		})
		if _, err := mutexes(r.client, names).TryLock(t.Context()); !errors.Is(err, dibs.ErrUnknown) {
			t.Errorf("TryLock: %v, want ErrUnknown", err)
		}
		for _, name := range names {
			r.Eventually(t, r.ttl/2, "everything is taken back", func() bool {
				c := Mutex(name, r.ttl)
				g, err := r.other.Acquire(t.Context(), c)
				if err == nil {
					c.Token = g.Token
					MustRelease(t, r.other, c)
				}
				return err == nil
			})
		}
		cut.Store(false)
		l, err := mutexes(r.client, names).Lock(t.Context()) // and Lock goes on
		if err != nil {
			t.Fatalf("Lock: %v", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	})},
}

// noDeadlock has 50 goroutines lock five of twenty names each, in any order.
func noDeadlock(t *testing.T, s *Stage) {
	both(func(t *testing.T, s *Stage) {
		var (
			clients []*dibs.Client
			base    = fresh()
			inside  [20]atomic.Int32
			wg      sync.WaitGroup
		)
		for range 2 {
			clients = append(clients, newRig(t, s, dibs.Settings{TTL: s.TTL(30 * time.Second)}).client)
		}
		for g := range 50 {
			wg.Go(func() { // ends with its rounds
				c, rng := clients[g%2], rand.New(rand.NewPCG(1, uint64(g)))
				for range 2 {
					five := rng.Perm(len(inside))[:5]
					var ls []*dibs.Locker
					for _, i := range five {
						ls = append(ls, c.Mutex(fmt.Sprintf("%s/%02d", base, i)))
					}
					err := c.All(ls...).Do(bounded(t, 5*time.Minute), func(context.Context) error {
						for _, i := range five {
							if inside[i].Add(1) != 1 {
								t.Errorf("two hold name %d", i)
							}
						}
						time.Sleep(time.Millisecond)
						for _, i := range five {
							inside[i].Add(-1)
						}
						return nil
					})
					if err != nil {
						t.Errorf("Do: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
	})(t, s)
}
