package drivertest

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var keepLaws = []law{
	{number: 18, name: "KeepClosesTheName", test: l18.run},
	{number: 49, name: "DelayAfterDeath", test: l49.run},
}

// keep returns c with Keep.
func keep(c driver.Claim, d time.Duration) driver.Claim {
	c.Keep = d
	return c
}

// delay returns c with Delay.
func delay(c driver.Claim, d time.Duration) driver.Claim {
	c.Delay = d
	return c
}

var l18 = parts{
	{"ReleasedIntoKept", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := delay(keep(Mutex(fresh(), s.long()), 3*s.tick()), s.long())
		m.Note = "nightly"
		m, g := MustAcquire(t, a, m)
		c := s.clock()
		c.after(s.tick())
		MustRelease(t, a, m)
		if hs := states(t, b, m.Name, driver.Kept); hs != nil {
			if hs[0].Token != g.Token || hs[0].Note != m.Note || hs[0].Fence != g.Fence {
				t.Fatalf("granted %+v, listed as kept %+v", g, hs[0])
			}
			c.left(t, "left", hs[0].Left, m.Keep)
		}
		gone(t, a, m)
		isNotHeld(t, a.Release(t.Context(), m))
		m.Token = 0
		gone(t, a, m)
		isNotHeld(t, a.Release(t.Context(), m)) // its ID does not take it back either
		c.before(m.Keep)
		e := refused(t, b, Mutex(m.Name, s.long()))
		if e.Holder != nil && (e.Holder.State != driver.Kept || e.Holder.Token != g.Token) {
			t.Fatalf("kept, and told %+v", e.Holder)
		}
		refused(t, a, m) // its own ID
		c.after(m.Keep)
		if g := free(t, b, m.Name, s.long()); g.TookOver {
			t.Fatal("the claim before it was released, and TookOver is set")
		}
	}},
	{"FromTheFirstGrant", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := keep(Mutex(fresh(), s.long()), 3*s.tick())
		MustAcquire(t, a, m)
		c := s.clock()
		c.after(s.tick())
		held, _ := MustAcquire(t, a, m) // a repeat
		proved(t, a, held)
		c.after(2 * s.tick())
		proved(t, a, held)
		MustRelease(t, a, held)
		c.before(m.Keep)
		refused(t, b, Mutex(m.Name, s.long()))
		c.after(m.Keep)
		free(t, b, m.Name, s.long())
	}},
	{"ReleaseWithoutItFrees", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, keep(Mutex(fresh(), s.long()), s.long()))
		MustRelease(t, a, keep(m, 0))
		states(t, b, m.Name)
		free(t, b, m.Name, s.long())
	}},
	{"NothingLeft", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, keep(Mutex(fresh(), s.long()), s.tick()))
		s.clock().after(m.Keep)
		MustRelease(t, a, m)
		free(t, b, m.Name, s.long())
	}},
	{"DiedIntoKept", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := delay(keep(Mutex(fresh(), s.tick()), 3*s.tick()), 2*s.tick())
		m, _ = MustAcquire(t, a, m)
		c := s.clock()
		s.die(t, a, m.TTL)
		states(t, b, m.Name, driver.Kept)
		gone(t, b, m)
		isNotHeld(t, b.Release(t.Context(), m))
		refused(t, b, m) // its own ID
		c.before(m.Keep)
		states(t, b, m.Name, driver.Kept)
		c.after(m.Keep)
		states(t, b, m.Name, driver.Draining) // like any death
		c.before(m.Keep + m.Delay)
		refused(t, b, Mutex(m.Name, s.long()))
		c.after(m.Keep + m.Delay)
		if g := free(t, b, m.Name, s.long()); !g.TookOver {
			t.Fatal("the claim before it died, and TookOver is not set")
		}
	}},
	{"NeverFromAHandOver", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered || s.Facts.HandOver == 0 {
			return
		}
		a, b := s.Open(t), s.Open(t)
		late := s.Facts.HandOver / 2
		for _, proof := range []func(driver.Claim) driver.Claim{
			func(c driver.Claim) driver.Claim { return granted(t, b, c) },
			func(c driver.Claim) driver.Claim { c, _ = MustAcquire(t, b, c); return c },
		} {
			m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
			w := with(keep(Mutex(m.Name, s.long()), 3*s.tick()), s.long())
			queued(t, b, w)
			MustRelease(t, a, m)
			time.Sleep(late)
			w = proof(w)
			c := s.clock()
			c.after(s.tick())
			MustRelease(t, b, w)
			c.before(w.Keep)
			refused(t, a, Mutex(m.Name, s.long()))
			c.after(w.Keep)
			free(t, a, m.Name, s.long())
		}
		// Who never heard of it has nothing to keep.
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w := with(keep(Mutex(m.Name, s.long()), s.long()), s.long())
		queued(t, b, w)
		MustRelease(t, a, m)
		MustRelease(t, b, w)
		free(t, a, m.Name, s.long())
		m, _ = MustAcquire(t, a, Mutex(fresh(), s.long()))
		w.Name, w.ID = m.Name, NewID()
		queued(t, b, w)
		MustRelease(t, a, m)
		s.clock().after(s.Facts.HandOver)
		free(t, a, m.Name, s.long())
	}},
	{"WaitersOutliveIt", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, keep(Mutex(fresh(), s.long()), 2*s.tick()))
		c := s.clock()
		w := with(Mutex(m.Name, s.long()), s.long())
		place := queued(t, b, w)
		MustRelease(t, a, m) // hands nothing over
		waits(t, b, w)
		c.after(m.Keep)
		for range 2 { // its end is an expiry: it runs nothing
			if e := waits(t, b, w); e.Place != place {
				t.Fatalf("place %d became %d", place, e.Place)
			}
		}
		refused(t, a, Mutex(m.Name, s.long()))
		granted(t, b, w)
	}},
	{"TakesItsUnits", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		a := s.Open(t)
		p, _ := MustAcquire(t, a, keep(Permit(fresh(), 2, 4, s.long()), s.long()))
		MustRelease(t, a, p)
		refused(t, a, Permit(p.Name, 3, 4, s.long()))
		MustAcquire(t, a, Permit(p.Name, 2, 4, s.long()))
	}},
}

var l49 = parts{
	{"AfterDeath", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := delay(Mutex(fresh(), s.tick()), 3*s.tick())
		m.Note = "import"
		m, g := MustAcquire(t, a, m)
		s.die(t, a, m.TTL)
		c := s.clock()
		if hs := states(t, b, m.Name, driver.Draining); hs != nil {
			if hs[0].Token != g.Token || hs[0].Note != m.Note {
				t.Fatalf("granted %+v, listed as draining %+v", g, hs[0])
			}
			c.left(t, "left", hs[0].Left, m.Delay)
		}
		gone(t, b, m)
		isNotHeld(t, b.Release(t.Context(), m))
		c.before(m.Delay)
		e := refused(t, b, Mutex(m.Name, s.long()))
		if e.Holder != nil && e.Holder.State != driver.Draining {
			t.Fatalf("draining, and told %+v", e.Holder)
		}
		c.after(m.Delay)
		if g := free(t, b, m.Name, s.long()); !g.TookOver {
			t.Fatal("the claim before it died, and TookOver is not set")
		}
	}},
	{"UnnoticedDeath", func(t *testing.T, s *Stage) {
		// Nobody asks before the Delay is over too.
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, delay(Mutex(fresh(), s.tick()), s.tick()))
		c := s.clock()
		s.die(t, a, m.TTL)
		c.after(m.TTL + m.Delay)
		free(t, b, m.Name, s.long())
	}},
	{"ReleaseIsInstant", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, delay(Mutex(fresh(), s.long()), s.long()))
		MustRelease(t, a, m)
		states(t, b, m.Name)
		free(t, b, m.Name, s.long())
	}},
	{"DeadReader", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, delay(Reader(fresh(), s.tick()), 3*s.tick()))
		s.die(t, a, r.TTL)
		c := s.clock()
		next, _ := MustAcquire(t, b, Reader(r.Name, s.long())) // not closed to readers
		MustRelease(t, b, next)
		refused(t, b, Mutex(r.Name, s.long()))
		c.before(r.Delay)
		refused(t, b, Mutex(r.Name, s.long()))
		c.after(r.Delay)
		free(t, b, r.Name, s.long())
	}},
	{"DeadCounted", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		a, b := s.Open(t), s.Open(t)
		p, _ := MustAcquire(t, a, delay(Permit(fresh(), 2, 4, s.tick()), 3*s.tick()))
		s.die(t, a, p.TTL)
		refused(t, b, Permit(p.Name, 3, 4, s.long()))
		MustAcquire(t, b, Permit(p.Name, 2, 4, s.long()))
	}},
	{"LapsedHandOver", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered || s.Facts.HandOver == 0 || s.Facts.Survival != driver.ByTTL {
			return
		}
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w := delay(with(Mutex(m.Name, s.long()), s.long()), 3*s.tick())
		queued(t, b, w)
		MustRelease(t, a, m)
		c := s.clock()
		c.after(s.Facts.HandOver)
		states(t, a, m.Name, driver.Draining)
		c.before(s.Facts.HandOver + w.Delay)
		refused(t, a, Mutex(m.Name, s.long()))
		c.after(s.Facts.HandOver + w.Delay)
		free(t, a, m.Name, s.long())
	}},
	{"RevokedAndSilent", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		if _, ok := b.(driver.Revoker); !ok {
			return
		}
		m, _ := MustAcquire(t, a, delay(Mutex(fresh(), s.tick()), 2*s.tick()))
		revoke(t, b, m, false)
		s.die(t, a, m.TTL)
		c := s.clock()
		states(t, b, m.Name, driver.Draining)
		c.before(m.Delay)
		refused(t, b, Mutex(m.Name, s.long()))
		c.after(m.Delay)
		free(t, b, m.Name, s.long())
	}},
}
