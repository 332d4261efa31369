package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var leaseConvertLaws = []law{
	{number: 21, name: "LeasesConvert", test: l21Core.run, waived: convertIsRefused},
}

// waiving is a store that does not keep a law.
type waiving struct {
	driver.Store
	law int
}

func (w waiving) Facts() driver.Facts {
	f := w.Store.Facts()
	f.Waives = append(f.Waives[:len(f.Waives):len(f.Waives)], driver.Waiver{Law: w.law, Why: "a test"})
	return f
}

func convertIsRefused(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	isUnsupported(t, "Downgrade", l.Downgrade(t.Context()))
	if n := len(r.calls.Calls(OpAcquire)); n != 1 {
		t.Errorf("%d asks, want that of the lock alone", n)
	}
	if err := l.Check(); err != nil {
		t.Errorf("after a refused conversion: %v", err)
	}
}

// reads takes a reader's lease on a fresh name of a new rig.
func reads(t testing.TB, s *Stage) (*rig, *dibs.Lease) {
	t.Helper()
	s.need(t, driver.Shared|driver.Exclusive)
	r := newRig(t, s, dibs.Settings{})
	l, err := r.client.Reader(fresh()).TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r, l
}

// stands demands that l is trusted, and that another writer is refused.
func (r *rig) stands(t testing.TB, l *dibs.Lease) {
	t.Helper()
	if err := errors.Join(l.Check(), l.Context().Err()); err != nil {
		t.Fatalf("the lease has ended: %v", context.Cause(l.Context()))
	}
	r.isHeld(t, l.Name())
}

// soonFree demands that name gets free within half a TTL: because it is given
// back, and not by its TTL.
func (r *rig) soonFree(t testing.TB, name string) {
	t.Helper()
	r.Eventually(t, r.ttl/2, "the name is free", func() bool {
		c := Mutex(name, r.ttl)
		g, err := r.other.Acquire(t.Context(), c)
		if err == nil {
			c.Token = g.Token
			MustRelease(t, r.other, c)
		}
		return err == nil
	})
}

// conversions are the asks that replace a claim.
func conversions(c Call) bool { return c.Op == OpAcquire && c.Claims[0].From != "" }

// faulty makes f the fault of conversions.
func (r *rig) faulty(f Fault) {
	r.link.Pick(func(c Call) (Fault, bool) { return f, conversions(c) })
}

// unclear converts l for a while without an answer.
func (r *rig) unclear(t testing.TB, l *dibs.Lease) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), r.ttl/4)
	defer cancel()
	if err := l.Upgrade(ctx); !errors.Is(err, dibs.ErrUnknown) || errors.Is(err, dibs.ErrHeld) {
		t.Fatalf("upgrade without an answer: %v, want ErrUnknown", err)
	}
	if err := l.Upgrade(t.Context()); !errors.Is(err, dibs.ErrRejected) {
		t.Errorf("another while that one is open: %v, want it rejected", err)
	}
}

var l21Core = parts{
	{"UpAndDown", func(t *testing.T, s *Stage) {
		r, l := reads(t, s)
		ctx, stop := l.Bind(t.Context())
		defer stop()
		last := l.Token()
		for _, step := range []struct {
			convert func(*dibs.Lease, context.Context) error
			shared  bool
		}{{(*dibs.Lease).Upgrade, false}, {(*dibs.Lease).Downgrade, true}, {(*dibs.Lease).Upgrade, false}} {
			if err := step.convert(l, t.Context()); err != nil {
				t.Fatalf("to shared %t: %v", step.shared, err)
			}
			newer(t, last, l.Token())
			last = l.Token()
			if !step.shared && l.Fence() != l.Token() && s.Facts.Fencing != driver.NoFencing {
				t.Errorf("a writer's fence is %d, and its token %d", l.Fence(), l.Token())
			}
			time.Sleep(2 * r.ttl)
			r.stands(t, l)
			if step.shared {
				m, _ := MustAcquire(t, r.other, Reader(l.Name(), r.ttl))
				MustRelease(t, r.other, m)
			} else {
				refused(t, r.other, Reader(l.Name(), r.ttl))
			}
		}
		if ctx.Err() != nil {
			t.Errorf("its ctx has ended: %v", context.Cause(ctx))
		}
		if err := l.Validate(t.Context()); err != nil {
			t.Errorf("validate: %v", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		r.isFree(t, l.Name())
		if err := l.Downgrade(t.Context()); !errors.Is(err, dibs.ErrReleased) {
			t.Errorf("after the release: %v", err)
		}
	}},
	{"InsideDo", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		r, name := newRig(t, s, dibs.Settings{}), fresh()
		err := r.client.Reader(name).Do(t.Context(), func(ctx context.Context) error {
			l, _ := dibs.FromContext(ctx)
			if err := l.Upgrade(ctx); err != nil {
				return err
			}
			refused(t, r.other, Reader(name, r.ttl))
			return ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
		r.isFree(t, name)
	}},
	{"RefusedChangesNothing", func(t *testing.T, s *Stage) {
		r, l := reads(t, s)
		token := l.Token()
		m, _ := MustAcquire(t, r.other, Reader(l.Name(), s.long()))
		if err := l.Upgrade(t.Context()); !errors.Is(err, dibs.ErrHeld) || errors.Is(err, dibs.ErrDeadlock) {
			t.Fatalf("beside another reader: %v, want ErrHeld", err)
		}
		if l.Token() != token {
			t.Errorf("token %d, was %d", l.Token(), token)
		}
		time.Sleep(2 * r.ttl)
		r.stands(t, l)
		MustRelease(t, r.other, m)
		if err := l.Upgrade(t.Context()); err != nil {
			t.Errorf("alone: %v", err)
		}
	}},
	{"TwoThatGrow", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered {
			s.skip(t, "the store keeps no line")
		}
		r, l := reads(t, s)
		m, _ := MustAcquire(t, r.other, Reader(l.Name(), s.long()))
		queued(t, r.other, with(into(m, Mutex("", s.long())), s.long()))
		err := l.Upgrade(t.Context())
		if !errors.Is(err, dibs.ErrDeadlock) || errors.Is(err, dibs.ErrHeld) {
			t.Errorf("beside another that grows: %v, want ErrDeadlock", err)
		}
		r.stands(t, l)
	}},
	{"Units", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		r, name := newRig(t, s, dibs.Settings{}), fresh()
		l, err := r.client.Semaphore(name, 4, 1).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, units := range []int{3, 2, 4, 1} {
			if err := l.Convert(t.Context(), r.client.Semaphore(name, 4, units)); err != nil {
				t.Fatalf("to %d units: %v", units, err)
			}
			if units == 4 {
				r.isHeld(t, name)
				continue
			}
			refused(t, r.other, Permit(name, 4-units+1, 5, r.ttl))
			m, _ := MustAcquire(t, r.other, Permit(name, 4-units, 5, r.ttl))
			MustRelease(t, r.other, m)
		}
	}},
	{"ALostAnswerIsFound", func(t *testing.T, s *Stage) {
		r, l := reads(t, s)
		n := 0
		r.link.Pick(func(c Call) (Fault, bool) {
			if !conversions(c) {
				return Pass, false
			}
			n++
			return CutAfter, n == 1
		})
		token := l.Token()
		if err := l.Upgrade(t.Context()); err != nil {
			t.Fatalf("upgrade: %v", err)
		}
		newer(t, token, l.Token())
		time.Sleep(2 * r.ttl)
		r.stands(t, l)
	}},
	{"TheOldOneStandsIfNothingCame", func(t *testing.T, s *Stage) {
		r, l := reads(t, s)
		r.faulty(CutBefore)
		token := l.Token()
		r.unclear(t, l)
		time.Sleep(3 * r.ttl)
		r.stands(t, l)
		if l.Token() != token {
			t.Errorf("token %d, was %d", l.Token(), token)
		}
		r.link.Pick(nil)
		if err := l.Upgrade(t.Context()); err != nil {
			t.Errorf("and then with an answer: %v", err)
		}
	}},
	{"TheNewOneStandsIfItCame", func(t *testing.T, s *Stage) {
		r, l := reads(t, s)
		r.faulty(CutAfter)
		token := l.Token()
		r.unclear(t, l)
		r.link.Pick(nil)
		time.Sleep(3 * r.ttl)
		r.stands(t, l)
		newer(t, token, l.Token())
		refused(t, r.other, Reader(l.Name(), r.ttl))
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
		r.isFree(t, l.Name())
	}},
	{"OrCameLate", func(t *testing.T, s *Stage) {
		r, l := reads(t, s)
		r.faulty(Late)
		token := l.Token()
		r.unclear(t, l)
		r.link.Pick(nil)
		r.link.Land()
		time.Sleep(3 * r.ttl)
		r.stands(t, l)
		newer(t, token, l.Token())
	}},
	{"LostIfBothAreRefused", func(t *testing.T, s *Stage) {
		r, l := reads(t, s)
		c := r.claim(t)
		r.faulty(CutBefore)
		r.unclear(t, l)
		MustRelease(t, r.other, c) // behind its back
		if !done(l.Context(), r.ttl) {
			t.Fatal("it goes on though both are refused")
		}
		isLost(t, l, dibs.Taken)
		r.link.Pick(nil)
		r.soonFree(t, l.Name())
	}},
	{"TakenAwayBeforeIt", func(t *testing.T, s *Stage) {
		r := revokes(t, s, dibs.Settings{})
		s.need(t, driver.Shared|driver.Exclusive)
		l, err := r.client.Reader(fresh()).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.link.On(CutBefore, OpRenew)
		r.takeAway(t, l.Name())
		if err := l.Upgrade(t.Context()); !errors.Is(err, dibs.ErrLost) {
			t.Errorf("upgrade of what was taken away: %v, want ErrLost", err)
		}
		if err := l.Check(); !errors.Is(err, dibs.ErrLost) {
			t.Errorf("check: %v", err)
		}
		r.soonFree(t, l.Name())
	}},
	{"ReleasedMeanwhile", func(t *testing.T, s *Stage) {
		for _, f := range []Fault{CutBefore, CutAfter, Late} {
			r, l := reads(t, s)
			r.faulty(f)
			r.unclear(t, l)
			r.link.Pick(nil)
			if err := l.Release(t.Context()); err != nil && !errors.Is(err, dibs.ErrNotHeld) {
				t.Errorf("%v: release: %v", f, err)
			}
			r.link.Land()
			r.soonFree(t, l.Name())
		}
	}},
	{"ClosedMeanwhile", func(t *testing.T, s *Stage) {
		r, l := reads(t, s)
		r.faulty(CutAfter)
		r.unclear(t, l)
		r.link.Pick(nil)
		if err := r.client.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		r.isFree(t, l.Name())
	}},
	{"RefusedWhereItIsWaived", func(t *testing.T, s *Stage) {
		cant := &Stage{Storage: s.Storage, Name: s.Name, Bubble: s.Bubble, Facts: s.Facts}
		cant.Open = func(t testing.TB) driver.Store { return waiving{s.Open(t), 21} }
		convertIsRefused(t, cant)
	}},
	{"WhatMakesNoSense", func(t *testing.T, s *Stage) {
		r, l := reads(t, s)
		all, err := r.client.All(r.client.Mutex(fresh()), r.client.Mutex(fresh())).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := len(r.calls.Calls(OpAcquire))
		for what, err := range map[string]error{
			"another name":    l.Convert(t.Context(), r.client.Mutex("another")),
			"another client":  l.Convert(t.Context(), newRig(t, s, dibs.Settings{}).client.Mutex(l.Name())),
			"into several":    l.Convert(t.Context(), r.client.All(r.client.Mutex(l.Name()))),
			"several":         all.Downgrade(t.Context()),
			"too many units":  l.Convert(t.Context(), r.client.Semaphore(l.Name(), 2, 3)),
			"a bad sibling's": l.Convert(t.Context(), r.client.With(dibs.Settings{TTL: -3}).Mutex(l.Name())),
		} {
			if !errors.Is(err, dibs.ErrRejected) {
				t.Errorf("%s: %v, want it rejected", what, err)
			}
		}
		if m := len(r.calls.Calls(OpAcquire)); m != n {
			t.Errorf("%d asks were made", m-n)
		}
		r.stands(t, l)
	}},
}
