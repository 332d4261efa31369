package drivertest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var allLaws = []law{
	{number: 45, name: "SeveralNamesAreOne", test: l45Core.run},
	{number: 45, name: "ALossEndsAll", test: l45Losses.run},
	{number: 45, name: "NobodyDeadlocks", test: noDeadlock, alone: true},
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
