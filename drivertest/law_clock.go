package drivertest

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var clockLaws = []law{
	{number: 16, name: "OnlyTheStoresClockEnds", test: l16.run},
	{number: 17, name: "EndedNameIsFree", test: l17.run},
}

var l16 = parts{
	{"OddMoments", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		// A claim lives its TTL to the last, whatever the clock on the wall says
		// when it is granted.
		a, b := s.Open(t), s.Open(t)
		for _, odd := range []time.Duration{s.tick() / 3, s.tick() * 2 / 3} {
			time.Sleep(odd)
			m, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
			c := s.clock()
			c.before(m.TTL)
			refused(t, b, Mutex(m.Name, s.long()))
			proved(t, a, m)
			c = s.clock()
			c.before(m.TTL)
			refused(t, b, Mutex(m.Name, s.long()))
			c.after(m.TTL)
			free(t, b, m.Name, s.long())
		}
	}},
	{"LateArrival", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		// A request that is on its way for longer than its TTL: the store counts
		// from its arrival.
		a, link := s.Link(t)
		b := s.Open(t)
		link.Delay(2*s.tick(), 0)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
		c := s.clock()
		link.Delay(0, 0)
		c.before(m.TTL)
		refused(t, b, Mutex(m.Name, s.long()))
		c.after(m.TTL)
		free(t, b, m.Name, s.long())
	}},
	{"CloseEndsNothing", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), 2*s.tick()))
		other, _ := MustAcquire(t, b, Mutex(fresh(), s.long()))
		w := with(Mutex(other.Name, s.long()), 2*s.tick())
		refused(t, a, w)
		c := s.clock()
		if err := a.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		c.before(m.TTL)
		refused(t, b, Mutex(m.Name, s.long()))
		if s.Facts.Ordered {
			states(t, b, other.Name, driver.Held, driver.Waiting)
		}
		proved(t, b, m) // whoever knows ID and token
		again := s.clock()
		again.after(m.TTL)
		free(t, b, m.Name, s.long())
		if s.Facts.Ordered {
			states(t, b, other.Name, driver.Held)
		}
	}},
	{"DeathOfTheSessionEnds", func(t *testing.T, s *Stage) {
		if s.Facts.Survival != driver.BySession {
			return
		}
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.TTL(0)))
		s.clock().after(2 * m.TTL)
		refused(t, b, Mutex(m.Name, s.long())) // no clock ends it
		s.die(t, a, m.TTL)
		free(t, b, m.Name, s.long())
	}},
}

var l17 = parts{
	{"NobodyReleases", func(t *testing.T, s *Stage) {
		// Nobody asks either: the first one who does finds the name free.
		b := s.Open(t)
		for _, c := range s.catalog() {
			a := s.Open(t)
			c.Name, c.ID, c.TTL = fresh(), NewID(), s.tick()
			MustAcquire(t, a, c)
			s.die(t, a, c.TTL)
			if g := free(t, b, c.Name, s.long()); !g.TookOver {
				t.Fatal("the claim before it died, and TookOver is not set")
			}
			if g := free(t, b, c.Name, s.long()); g.TookOver {
				t.Fatal("the claim before it was released, and TookOver is set")
			}
		}
	}},
	{"TookOverIsTold", func(t *testing.T, s *Stage) {
		// Also if somebody noticed the end before the next grant.
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
		s.clock().after(m.TTL)
		gone(t, a, m)
		isNotHeld(t, a.Release(t.Context(), m))
		states(t, b, m.Name)
		if g := free(t, b, m.Name, s.long()); !g.TookOver {
			t.Fatal("the claim before it died, and TookOver is not set")
		}
	}},
	{"OneOfSeveral", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.tick()))
		stays, _ := MustAcquire(t, b, Reader(r.Name, s.long()))
		s.die(t, a, r.TTL)
		refused(t, b, Mutex(r.Name, s.long()))
		proved(t, b, stays)
		next, g := MustAcquire(t, b, Reader(r.Name, s.long()))
		if !g.TookOver {
			t.Fatal("a claim died since the last grant, and TookOver is not set")
		}
		MustRelease(t, b, stays)
		MustRelease(t, b, next)
		free(t, b, r.Name, s.long())
	}},
	{"TheSecondOfSeveral", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		a, b := s.Open(t), s.Open(t)
		name := fresh()
		MustAcquire(t, b, Permit(name, 1, 3, s.long()))
		p, _ := MustAcquire(t, a, Permit(name, 2, 3, s.tick()))
		s.die(t, a, p.TTL)
		MustAcquire(t, b, Permit(name, 2, 3, s.long()))
	}},
	{"WaitersFindIt", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
		w := with(Mutex(m.Name, s.long()), s.long())
		queued(t, b, w)
		s.die(t, a, m.TTL)
		if _, g := MustAcquire(t, b, w); !g.TookOver {
			t.Fatal("the claim before it died, and TookOver is not set")
		}
	}},
}
