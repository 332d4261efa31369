package drivertest

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var refusalLaws = []law{
	{number: 6, name: "RefusalSaysWhoAndWhen", test: l6.run},
}

var l6 = parts{
	{"Holder", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		for _, c := range s.catalog() {
			c.Name, c.ID, c.Note = fresh(), NewID(), "backup on db1"
			_, g := MustAcquire(t, a, c)
			e := refused(t, b, Mutex(c.Name, s.long()))
			if e.Reserved || e.Deadlock || e.Place != 0 {
				t.Fatalf("held by one and nobody waits: %+v", e)
			}
			h := e.Holder
			if h == nil {
				if s.knowsHolders(t, b, c.Name) {
					t.Fatal("a store that knows its holders does not name the one in the way")
				}
				continue
			}
			if h.Name != c.Name || h.State != driver.Held || h.Token != g.Token || h.Fence != g.Fence || h.Units != c.Units ||
				h.Capacity != c.Capacity || h.Note != c.Note || h.Place != 0 {
				t.Fatalf("held by %+v (%+v), told %+v", c, g, h)
			}
		}
	}},
	{"HolderTimes", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), 8*s.tick()))
		c := s.clock()
		c.after(2 * s.tick())
		h := refused(t, b, Mutex(m.Name, s.long())).Holder
		if h == nil {
			s.skip(t, "the store does not name holders")
		}
		c.left(t, "left", h.Left, m.TTL)
		c.left(t, "age, counted back", 8*s.tick()-h.Age, 8*s.tick())
		if h.TTL != m.TTL {
			t.Fatalf("TTL %v, told %v", m.TTL, h.TTL)
		}
	}},
	{"Place", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		if e := refused(t, b, Mutex(m.Name, s.long())); e.Place != 0 {
			t.Fatalf("no patience, and place %d", e.Place)
		}
		w := with(Mutex(m.Name, s.long()), s.long())
		if !s.Facts.Ordered {
			if e := refused(t, b, w); e.Place != 0 {
				t.Fatalf("the store keeps no line, and gave place %d", e.Place)
			}
			return
		}
		// A number is never reused: not after its place was given up, and not
		// after the name was idle.
		var last uint64
		for range 3 {
			for range 3 {
				w.ID = NewID()
				place := queued(t, b, w)
				newer(t, last, place)
				if e := waits(t, b, w); e.Place != place {
					t.Fatalf("place %d, refreshed as %d", place, e.Place)
				}
				last = place
				MustRelease(t, b, w)
			}
			MustRelease(t, a, m)
			m, _ = MustAcquire(t, a, Mutex(m.Name, s.long()))
		}
	}},
	{"Reserved", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		if !s.Facts.Ordered {
			return
		}
		a := s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		queued(t, a, with(Mutex(r.Name, s.long()), s.long()))
		e := refused(t, a, Reader(r.Name, s.long()))
		if !e.Reserved {
			t.Fatalf("only the line is in the way: %+v", e)
		}
	}},
	{"RetryAfterTTL", func(t *testing.T, s *Stage) {
		s.retry(t, 4*s.tick(), func(t *testing.T, a driver.Store, name string) clock {
			MustAcquire(t, a, Mutex(name, 4*s.tick()))
			return s.clock()
		}, Mutex)
	}},
	{"RetryAfterProof", func(t *testing.T, s *Stage) {
		s.retry(t, 4*s.tick(), func(t *testing.T, a driver.Store, name string) clock {
			m, _ := MustAcquire(t, a, Mutex(name, 2*s.tick()))
			m.TTL = 4 * s.tick()
			proved(t, a, m)
			return s.clock()
		}, Mutex)
	}},
	{"RetryAfterSoonest", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		s.retry(t, 2*s.tick(), func(t *testing.T, a driver.Store, name string) clock {
			MustAcquire(t, a, Reader(name, 5*s.tick()))
			MustAcquire(t, a, Reader(name, 2*s.tick()))
			MustAcquire(t, a, Reader(name, 9*s.tick()))
			return s.clock()
		}, nil)
	}},
	{"RetryAfterKeepAndDelay", func(t *testing.T, s *Stage) {
		s.retry(t, 5*s.tick(), func(t *testing.T, a driver.Store, name string) clock {
			m := Mutex(name, 2*s.tick())
			m.Keep, m.Delay = 3*s.tick(), 2*s.tick()
			MustAcquire(t, a, m)
			return s.clock()
		}, Mutex)
	}},
	{"RetryAfterDelay", func(t *testing.T, s *Stage) {
		s.retry(t, 4*s.tick(), func(t *testing.T, a driver.Store, name string) clock {
			m := Mutex(name, 2*s.tick())
			m.Keep, m.Delay = s.tick(), 2*s.tick()
			MustAcquire(t, a, m)
			return s.clock()
		}, Mutex)
	}},
	{"RetryAfterKept", func(t *testing.T, s *Stage) {
		s.retry(t, 3*s.tick(), func(t *testing.T, a driver.Store, name string) clock {
			m := Mutex(name, s.long())
			m.Keep, m.Delay = 3*s.tick(), s.long() // a release has no Delay
			m, _ = MustAcquire(t, a, m)
			c := s.clock()
			MustRelease(t, a, m)
			return c
		}, Mutex)
	}},
	{"RetryAfterDraining", func(t *testing.T, s *Stage) {
		s.retry(t, 4*s.tick(), func(t *testing.T, a driver.Store, name string) clock {
			m := Mutex(name, s.tick())
			m.Delay = 3 * s.tick()
			MustAcquire(t, a, m)
			c := s.clock()
			c.after(s.tick())
			return c
		}, Mutex)
	}},
	{"RetryAfterRevoked", func(t *testing.T, s *Stage) {
		if _, ok := s.Open(t).(driver.Revoker); !ok {
			return
		}
		s.retry(t, 3*s.tick(), func(t *testing.T, a driver.Store, name string) clock {
			m, _ := MustAcquire(t, a, Mutex(name, 3*s.tick()))
			c := s.clock()
			revoke(t, a, m, false)
			return c
		}, Mutex)
	}},
	{"RetryAfterHandOver", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered || s.Facts.HandOver == 0 {
			return
		}
		s.retry(t, s.Facts.HandOver, func(t *testing.T, a driver.Store, name string) clock {
			m, _ := MustAcquire(t, a, Mutex(name, s.long()))
			queued(t, a, with(Mutex(name, s.long()), s.long()))
			MustRelease(t, a, m)
			return s.clock()
		}, Mutex)
	}},
	{"RetryAfterIsNotOfPlacesBehind", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered || s.Facts.Survival != driver.ByTTL {
			return
		}
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), 8*s.tick()))
		c := s.clock()
		w := with(Mutex(m.Name, s.long()), s.long())
		queued(t, b, w)
		refused(t, b, with(Mutex(m.Name, s.long()), 2*s.tick()))
		c.left(t, "RetryAfter asked", refused(t, b, w).RetryAfter, m.TTL)
		c.left(t, "RetryAfter renewed", waits(t, b, w).RetryAfter, m.TTL)
	}},
	{"RetryAfterPlaceAhead", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		if !s.Facts.Ordered {
			return
		}
		s.retry(t, 3*s.tick(), func(t *testing.T, a driver.Store, name string) clock {
			MustAcquire(t, a, Reader(name, s.long()))
			queued(t, a, with(Mutex(name, s.long()), 3*s.tick()))
			return s.clock()
		}, Reader)
	}},
}

// retry checks that a claim is told to ask again exactly d after the start of the
// clock that set returns, and that it is granted then if nobody acts; claim nil:
// that it is only told.
func (s *Stage) retry(t *testing.T, d time.Duration, set func(t *testing.T, a driver.Store, name string) clock,
	claim func(name string, ttl time.Duration) driver.Claim,
) {
	t.Helper()
	if s.Facts.Survival != driver.ByTTL {
		return // it knows no such moment
	}
	a, b, name := s.Open(t), s.Open(t), fresh()
	c := set(t, a, name)
	check := func(e *driver.HeldError) {
		t.Helper()
		c.left(t, "RetryAfter", e.RetryAfter, d)
	}
	if claim == nil {
		check(refused(t, b, Mutex(name, s.long())))
		return
	}
	check(refused(t, b, claim(name, s.long())))
	time.Sleep(s.tick() / 4)
	e := refused(t, b, claim(name, s.long()))
	check(e)
	c.before(d)
	refused(t, b, claim(name, s.long()))
	c.after(d)
	MustAcquire(t, b, claim(name, s.long()))
}
