package drivertest

import (
	"errors"
	"testing"

	"github.com/dibslock/dibs/driver"
)

var convertLaws = []law{
	{number: 21, name: "ConvertIsOneStep", test: l21.run},
}

// into is a claim that replaces old.
func into(old, c driver.Claim) driver.Claim {
	c.Name, c.From = old.Name, old.ID
	return c
}

var l21 = parts{
	{"GrowAlone", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		m := into(r, Mutex("", s.long()))
		held, g := MustAcquire(t, a, m)
		newer(t, r.Token, held.Token)
		gone(t, a, r)
		isNotHeld(t, a.Release(t.Context(), r))
		refused(t, b, Reader(r.Name, s.long()))
		states(t, b, r.Name, driver.Held)
		_, again := MustAcquire(t, a, m) // its From has ended, and it is a repeat
		if again.Token != g.Token {
			t.Fatalf("token %d, repeated %d", g.Token, again.Token)
		}
		MustRelease(t, a, held)
		free(t, b, r.Name, s.long())
	}},
	{"GrowRefusedChangesNothing", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		other, _ := MustAcquire(t, b, Reader(r.Name, s.long()))
		m := into(r, Mutex("", s.long()))
		if e := refused(t, a, m); e.Place != 0 || e.Deadlock || e.Holder != nil && e.Holder.Token != other.Token {
			t.Fatalf("refused without patience: %+v (%+v)", e, e.Holder)
		}
		proved(t, a, r)
		gone(t, a, m)
		states(t, b, r.Name, driver.Held, driver.Held)
		if !s.Facts.Ordered {
			if e := refused(t, a, with(m, s.long())); e.Place != 0 {
				t.Fatalf("the store keeps no line: %+v", e)
			}
		}
		MustRelease(t, b, other)
		MustAcquire(t, a, m)
		gone(t, a, r)
	}},
	{"GrowWaitsBeforeAll", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		other, _ := MustAcquire(t, b, Reader(r.Name, s.long()))
		w := with(Mutex(r.Name, s.long()), s.long())
		queued(t, b, w)
		m := with(into(r, Mutex("", s.long())), s.long())
		place := queued(t, a, m)
		if e := waits(t, a, m); e.Place != place || e.Holder != nil && e.Holder.Token != other.Token {
			t.Fatalf("place %d, refreshed as %+v (%+v)", place, e, e.Holder)
		}
		proved(t, a, r) // it holds on meanwhile
		if hs := states(t, b, r.Name, driver.Held, driver.Held, driver.Waiting, driver.Waiting); hs != nil && hs[2].Place != place {
			t.Fatalf("place %d grows, and is listed as %+v", place, hs)
		}
		MustRelease(t, b, other)
		gone(t, a, r)
		m = granted(t, a, m)
		newer(t, r.Token, m.Token)
		waits(t, b, w)
		states(t, b, r.Name, driver.Held, driver.Waiting)
		MustRelease(t, a, m)
		granted(t, b, w)
	}},
	{"GrowPassesTheLine", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		p, _ := MustAcquire(t, a, Permit(fresh(), 1, 4, s.long()))
		MustAcquire(t, b, Permit(p.Name, 1, 4, s.long()))
		w := with(Permit(p.Name, 3, 4, s.long()), s.long())
		queued(t, b, w)
		MustAcquire(t, a, into(p, Permit("", 3, 4, s.long()))) // it fits, and stands before w
		gone(t, a, p)
		waits(t, b, w)
	}},
	{"SecondGrower", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		r1, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		r2, _ := MustAcquire(t, b, Reader(r1.Name, s.long()))
		m1, m2 := with(into(r1, Mutex("", s.long())), s.long()), with(into(r2, Mutex("", s.long())), s.long())
		queued(t, a, m1)
		for _, barging := range []bool{false, true} {
			m2.Barging = barging
			if e := refused(t, b, m2); !e.Deadlock || e.Place != 0 {
				t.Fatalf("a second one that grows: %+v", e)
			}
			gone(t, b, m2)
		}
		if e := refused(t, a, m1); e.Deadlock {
			t.Fatalf("the first one that grows: %+v", e)
		}
		proved(t, a, r1)
		proved(t, b, r2)
		states(t, b, r1.Name, driver.Held, driver.Held, driver.Waiting)
		MustRelease(t, b, r2) // it gives way
		granted(t, a, m1)
	}},
	{"DeadWithItsClaim", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		other, _ := MustAcquire(t, b, Reader(r.Name, s.long()))
		m := with(into(r, Mutex("", s.long())), s.long())
		queued(t, a, m)
		behind := with(Reader(r.Name, s.long()), s.long())
		queued(t, b, behind)
		MustRelease(t, a, r)
		gone(t, a, m)
		_, err := a.Acquire(t.Context(), m)
		isNotHeld(t, err)
		granted(t, b, behind) // the place that grew held it back
		proved(t, b, other)
	}},
	{"DeadWithItsClaimsTTL", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		s.byTTL(t)
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		other, _ := MustAcquire(t, b, Reader(fresh(), s.long()))
		r, _ := MustAcquire(t, a, delay(Reader(other.Name, 3*s.tick()), s.long())) // which closes it to nobody but writers
		c := s.clock()
		m := with(into(r, Mutex("", s.long())), s.long())
		queued(t, a, m)
		e := refused(t, b, Reader(r.Name, s.long()))
		c.left(t, "RetryAfter behind the place that grows", e.RetryAfter, r.TTL)
		c.after(r.TTL)
		gone(t, a, m)
		MustAcquire(t, b, Reader(r.Name, s.long()))
		proved(t, b, other)
	}},
	{"FromGone", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		MustRelease(t, a, m)
		_, err := a.Acquire(t.Context(), with(into(m, Mutex("", s.long())), s.long()))
		if e := isNotHeld(t, err); e.By != nil {
			t.Fatalf("nobody holds it, told %+v", e.By)
		}
		states(t, b, m.Name)
		next, _ := MustAcquire(t, b, Mutex(m.Name, s.long()))
		_, err = a.Acquire(t.Context(), into(m, Mutex("", s.long())))
		if e := isNotHeld(t, err); e.By != nil && e.By.Token != next.Token {
			t.Fatalf("held under token %d, told %+v", next.Token, e.By)
		}
		proved(t, b, next)
		// Kept is gone too.
		k, _ := MustAcquire(t, a, keep(Mutex(fresh(), s.long()), s.long()))
		MustRelease(t, a, k)
		_, err = a.Acquire(t.Context(), into(k, Mutex("", s.long())))
		isNotHeld(t, err)
		states(t, b, k.Name, driver.Kept)
	}},
	{"FromRevoked", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		if _, ok := b.(driver.Revoker); !ok {
			return
		}
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		revoke(t, b, m, false)
		_, err := a.Acquire(t.Context(), into(m, Mutex("", s.long())))
		if !errors.Is(err, driver.ErrNotHeld) {
			t.Fatalf("a revoked claim was replaced: %v", err)
		}
		states(t, b, m.Name, driver.Revoked)
	}},
	{"Shrink", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		m, g := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w1, w2, w3 := with(Reader(m.Name, s.long()), s.long()), with(Mutex(m.Name, s.long()), s.long()), with(Reader(m.Name, s.long()), s.long())
		for _, w := range []driver.Claim{w1, w2, w3} {
			refused(t, b, w)
		}
		r, g2 := MustAcquire(t, a, into(m, Reader("", s.long())))
		newer(t, m.Token, r.Token)
		if s.Facts.Fencing != driver.NoFencing {
			newer(t, g.Fence, g2.Fence)
		}
		gone(t, a, m)
		proved(t, a, r)
		if s.Facts.Ordered { // and whoever it let in
			granted(t, b, w1)
			waits(t, b, w2)
			waits(t, b, w3)
			return
		}
		MustAcquire(t, b, w1)
	}},
	{"ShrinkBehindAWriter", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		refused(t, b, with(Mutex(m.Name, s.long()), s.long()))
		r, _ := MustAcquire(t, a, into(m, Reader("", s.long())))
		proved(t, a, r)
	}},
	{"ShrinkUnits", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		a, b := s.Open(t), s.Open(t)
		p, _ := MustAcquire(t, a, Permit(fresh(), 3, 4, s.long()))
		MustAcquire(t, b, Permit(p.Name, 1, 4, s.long()))
		w := with(Permit(p.Name, 2, 4, s.long()), s.long())
		refused(t, b, w)
		small, _ := MustAcquire(t, a, into(p, Permit("", 1, 4, s.long())))
		if s.Facts.Ordered {
			granted(t, b, w)
		} else {
			MustAcquire(t, b, w)
		}
		refused(t, b, Permit(p.Name, 1, 4, s.long()))
		gone(t, a, p)
		proved(t, a, small)
		// Another capacity is no shrinking: it has to fit.
		refused(t, a, into(small, Permit("", 1, 2, s.long())))
		proved(t, a, small)
	}},
	{"ShrinkPassesTheOneThatGrows", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		p1, _ := MustAcquire(t, a, Permit(fresh(), 2, 4, s.long()))
		p2, _ := MustAcquire(t, b, Permit(p1.Name, 2, 4, s.long()))
		grown := with(into(p1, Permit("", 3, 4, s.long())), s.long())
		queued(t, a, grown)
		MustAcquire(t, b, into(p2, Permit("", 1, 4, s.long())))
		granted(t, a, grown)
		gone(t, a, p1)
	}},
	{"KeepCarriesOver", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := delay(keep(Permit(fresh(), 2, 2, s.long()), 4*s.tick()), s.long())
		m, _ = MustAcquire(t, a, m)
		c := s.clock()
		c.after(s.tick())
		next, g := MustAcquire(t, a, keep(into(m, Mutex("", s.long())), m.Keep))
		if g.TookOver {
			t.Fatal("nobody died, and TookOver is set")
		}
		states(t, b, m.Name, driver.Held) // the old one is neither kept nor draining
		c.after(2 * s.tick())
		MustRelease(t, a, next)
		c.before(m.Keep) // from the first grant of all
		refused(t, b, Mutex(m.Name, s.long()))
		c.after(m.Keep)
		free(t, b, m.Name, s.long())
	}},
	{"KeepCarriesOverAHandOver", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		if !s.Facts.Ordered || s.Facts.HandOver == 0 {
			return
		}
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, keep(Reader(fresh(), s.long()), 4*s.tick()))
		c := s.clock()
		other, _ := MustAcquire(t, b, Reader(r.Name, s.long()))
		m := with(keep(into(r, Mutex("", s.long())), r.Keep), s.long())
		queued(t, a, m)
		c.after(s.tick())
		MustRelease(t, b, other)
		states(t, b, r.Name, driver.Handed)
		m = granted(t, a, m)
		MustRelease(t, a, m)
		c.before(r.Keep)
		refused(t, b, Mutex(r.Name, s.long()))
		c.after(r.Keep)
		free(t, b, r.Name, s.long())
	}},
}
