package drivertest

import (
	"context"
	"errors"
	"testing"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var nestedLaws = []law{
	{number: 53, name: "NobodyWaitsForItself", test: l53.run},
}

// deadlocks demands that a Lock is refused as a deadlock.
func deadlocks(t testing.TB, ctx context.Context, l *dibs.Locker) {
	t.Helper()
	lease, err := l.Lock(ctx)
	var e *dibs.DeadlockError
	if !errors.As(err, &e) || !errors.Is(err, dibs.ErrDeadlock) || errors.Is(err, dibs.ErrHeld) {
		t.Errorf("Lock in itself: %v, want a *DeadlockError", err)
	}
	if lease != nil {
		_ = lease.Release(ctx)
	}
}

var l53 = parts{
	{"AMutexInItself", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		m := r.client.Mutex(fresh())
		err := m.Do(t.Context(), func(ctx context.Context) error {
			l, ok := dibs.FromContext(ctx)
			if !ok || l.Name() != m.Name() || l.Check() != nil {
				t.Errorf("the lease of the ctx: %v, %t", l, ok)
			}
			deadlocks(t, ctx, m)
			if err := r.client.With(dibs.Settings{Note: "a sibling"}).Mutex(m.Name()).Do(ctx, nothing); !errors.Is(err, dibs.ErrDeadlock) {
				t.Errorf("Do in itself: %v", err)
			}
			if err := m.TryDo(ctx, nothing); !errors.Is(err, dibs.ErrHeld) { // which doesn't wait
				t.Errorf("TryDo in itself: %v, want ErrHeld", err)
			}
			deadlocks(t, ctx, r.client.All(m, r.client.Mutex(fresh())))
			return r.client.Mutex(fresh()).Do(ctx, func(ctx context.Context) error { // another name in between
				deadlocks(t, ctx, m)
				return nil
			})
		})
		if err != nil {
			t.Errorf("Do: %v", err)
		}
		if _, ok := dibs.FromContext(t.Context()); ok {
			t.Error("a lease in a ctx that has none")
		}
		r.isFree(t, m.Name())
	}},
	{"APartOfAllInItself", func(t *testing.T, s *Stage) {
		r, names := newRig(t, s, dibs.Settings{}), three()
		err := mutexes(r.client, names).Do(t.Context(), func(ctx context.Context) error {
			deadlocks(t, ctx, r.client.Mutex(names[1]))
			return nil
		})
		if err != nil {
			t.Errorf("Do: %v", err)
		}
	}},
	{"AReaderBehindAWriter", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered {
			s.skip(t, "the store keeps no line")
		}
		sharing(t, s)
		r := newRig(t, s, dibs.Settings{})
		read := r.client.Reader(fresh())
		w := with(Mutex(read.Name(), s.long()), s.long())
		err := read.Do(t.Context(), func(ctx context.Context) error {
			if err := read.Do(ctx, nothing); err != nil {
				t.Errorf("a reader in a reader: %v", err)
			}
			queued(t, r.other, w)
			deadlocks(t, ctx, read)
			waits(t, r.other, w)
			return nil
		})
		if err != nil {
			t.Errorf("Do: %v", err)
		}
		MustRelease(t, r.other, granted(t, r.other, w)) // it was the next one
	}},
	{"AnEndedLeaseIsNoneAnyMore", func(t *testing.T, s *Stage) {
		r := newRig(t, s, dibs.Settings{})
		m := r.client.Mutex(fresh())
		var inner context.Context
		if err := m.Do(t.Context(), func(ctx context.Context) error { inner = context.WithoutCancel(ctx); return nil }); err != nil {
			t.Fatal(err)
		}
		c, _ := MustAcquire(t, r.other, Mutex(m.Name(), s.long()))
		after(t, s.tick()/4, func() { _ = r.other.Release(context.Background(), c) })
		if err := m.Do(inner, nothing); err != nil {
			t.Errorf("Do with the ctx of a lease that has ended: %v", err)
		}
	}},
	{"AnotherStoreIsAnother", func(t *testing.T, s *Stage) {
		one, other := newRig(t, s, dibs.Settings{}), newRig(t, s, dibs.Settings{})
		m := one.client.Mutex(fresh())
		err := m.Do(t.Context(), func(ctx context.Context) error {
			short, cancel := context.WithTimeout(ctx, s.tick()/4)
			defer cancel()
			if err := other.client.Mutex(m.Name()).Do(short, nothing); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, dibs.ErrDeadlock) {
				t.Errorf("by another client: %v; only what the client itself holds is known", err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("Do: %v", err)
		}
	}},
	{"UnitsInUnits", func(t *testing.T, s *Stage) {
		if !s.has(driver.Counted) {
			s.skip(t, "the store does not count")
		}
		r := newRig(t, s, dibs.Settings{})
		name := fresh()
		err := r.client.Semaphore(name, 3, 2).Do(t.Context(), func(ctx context.Context) error {
			if err := r.client.Semaphore(name, 3, 1).Do(ctx, nothing); err != nil {
				t.Errorf("one more: %v", err)
			}
			deadlocks(t, ctx, r.client.Semaphore(name, 3, 2))
			return nil
		})
		if err != nil {
			t.Errorf("Do: %v", err)
		}
	}},
}
