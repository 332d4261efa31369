package drivertest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var handOverLaws = []law{
	{number: 25, name: "EveryStepLetsTheLineIn", test: l25.ordered},
	{number: 26, name: "DeadPlacesAreSkipped", test: l26.ordered},
	{number: 27, name: "EvictedWaitersComeBack", test: l27.ordered},
}

var l25 = parts{
	{"AllThatFitAndNobodyElse", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		ws := []driver.Claim{
			Reader(m.Name, s.long()), Reader(m.Name, s.long()), Mutex(m.Name, s.long()), Reader(m.Name, s.long()), Mutex(m.Name, s.long()),
		}
		var heardBy []<-chan driver.Signal
		for i := range ws {
			ws[i].Patience = s.long()
			queued(t, b, ws[i])
			if _, ok := b.(driver.Watcher); ok {
				heardBy = append(heardBy, watch(t, b, ws[i]))
			}
		}
		MustRelease(t, a, m)
		if s.Facts.HandOver > 0 {
			states(t, a, m.Name, driver.Handed, driver.Handed, driver.Waiting, driver.Waiting, driver.Waiting)
		}
		for i, signals := range heardBy {
			if i < 2 {
				heard(t, s, signals)
			} else {
				silent(t, s, signals)
			}
		}
		r1, r2 := granted(t, b, ws[0]), granted(t, b, ws[1])
		for _, w := range ws[2:] {
			waits(t, b, w)
		}
		MustRelease(t, b, r1)
		waits(t, b, ws[2])
		MustRelease(t, b, r2)
		w := granted(t, b, ws[2])
		waits(t, b, ws[3])
		MustRelease(t, b, w)
		granted(t, b, ws[3])
		waits(t, b, ws[4])
	}},
	{"WhenAPlaceLeaves", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		w := with(Mutex(r.Name, s.long()), s.long())
		queued(t, b, w)
		behind := with(Reader(r.Name, s.long()), s.long())
		queued(t, b, behind)
		MustRelease(t, b, w)
		states(t, a, r.Name, driver.Held, driver.Handed)
		granted(t, b, behind)
		proved(t, a, r)
	}},
	{"WhenUnitsLeave", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		a, b := s.Open(t), s.Open(t)
		p1, _ := MustAcquire(t, a, Permit(fresh(), 2, 5, s.long()))
		p2, _ := MustAcquire(t, a, Permit(p1.Name, 2, 5, s.long()))
		w1 := with(Permit(p1.Name, 3, 5, s.long()), s.long())
		w2 := with(Permit(p1.Name, 1, 5, s.long()), s.long())
		w3 := with(Permit(p1.Name, 2, 5, s.long()), s.long())
		for _, w := range []driver.Claim{w1, w2, w3} {
			queued(t, b, w)
		}
		MustRelease(t, a, p1) // 2 live: 3 more fit, then none
		granted(t, b, w1)
		waits(t, b, w2)
		MustRelease(t, a, p2) // 3 live: 1 more, and then not 2
		granted(t, b, w2)
		waits(t, b, w3)
	}},
	{"WhenAClaimLapses", func(t *testing.T, s *Stage) {
		// A takeover after an expiry lets in all that fit, not only the one who
		// found it.
		s.need(t, driver.Shared|driver.Exclusive)
		b := s.Open(t)
		dying := s.Open(t)
		m, _ := MustAcquire(t, dying, Mutex(fresh(), s.tick()))
		r1, r2 := with(Reader(m.Name, s.long()), s.long()), with(Reader(m.Name, s.long()), s.long())
		queued(t, b, r1)
		queued(t, b, r2)
		s.die(t, dying, m.TTL)
		MustAcquire(t, b, r2)
		granted(t, b, r1)
	}},
	{"WhenAReleaseFindsMoreEnded", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		dying := s.Open(t)
		r1, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		r2, _ := MustAcquire(t, dying, Reader(r1.Name, s.tick()))
		w := with(Mutex(r1.Name, s.long()), s.long())
		queued(t, b, w)
		s.die(t, dying, r2.TTL)
		MustRelease(t, a, r1)
		granted(t, b, w)
	}},
	{"HandOverTTL", func(t *testing.T, s *Stage) {
		hand := s.Facts.HandOver
		if hand == 0 {
			s.skip(t, "the store hands nothing over")
		}
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		ws := line(t, s, b, m.Name, 2)
		MustRelease(t, a, m)
		c := s.clock()
		if hs := states(t, a, m.Name, driver.Handed, driver.Waiting); hs != nil {
			c.left(t, "left of the hand-over", hs[0].Left, hand)
			if hs[0].Token <= m.Token || hs[0].TTL != ws[0].TTL {
				t.Fatalf("handed over after token %d: %+v", m.Token, hs[0])
			}
		}
		c.before(hand)
		refused(t, a, Mutex(m.Name, s.long()))
		c.after(hand)
		refused(t, a, Mutex(m.Name, s.long())) // it lapsed, and the next one has it
		gone(t, b, ws[0])
		w := proved(t, b, ws[1])
		if !w.Grant.TookOver {
			t.Fatal("the claim before it lapsed, and TookOver is not set")
		}
	}},
	{"HandOverWithinPatience", func(t *testing.T, s *Stage) {
		if s.Facts.HandOver < s.tick() {
			return
		}
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		patience := s.TTL(s.Facts.HandOver)
		w := with(Mutex(m.Name, s.long()), patience)
		queued(t, b, w)
		c := s.clock()
		c.before(s.tick()) // so that a hand-over of full length would outlive the patience
		MustRelease(t, a, m)
		if hs := states(t, a, m.Name, driver.Handed); hs != nil {
			c.left(t, "left of the hand-over", hs[0].Left, patience)
		}
		c.before(patience)
		refused(t, a, Mutex(m.Name, s.long()))
		c.after(patience)
		free(t, a, m.Name, s.long())
	}},
}

var l26 = parts{
	{"Skipped", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		dying := s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w := with(Mutex(m.Name, s.long()), 2*s.tick())
		queued(t, dying, w)
		stays := with(Mutex(m.Name, s.long()), s.long())
		queued(t, b, stays)
		c := s.clock()
		if s.Facts.Survival == driver.ByTTL {
			c.after(s.tick())
			waits(t, dying, w) // patience counts from here
			c = s.clock()
			c.before(w.Patience)
			states(t, a, m.Name, driver.Held, driver.Waiting, driver.Waiting)
			c.after(w.Patience)
		} else {
			s.die(t, dying, w.Patience)
		}
		states(t, a, m.Name, driver.Held, driver.Waiting)
		gone(t, b, w)
		isNotHeld(t, b.Release(t.Context(), w))
		MustRelease(t, a, m)
		granted(t, b, stays)
		gone(t, b, w)
	}},
	{"ByTheReleaseItself", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		dying := s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w := with(Mutex(m.Name, s.long()), s.tick())
		queued(t, dying, w)
		stays := with(Mutex(m.Name, s.long()), s.long())
		queued(t, b, stays)
		s.die(t, dying, w.Patience)
		MustRelease(t, a, m) // nobody has looked at the dead place meanwhile
		granted(t, b, stays)
	}},
	{"RefreshedByAsking", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w := with(Mutex(m.Name, s.long()), 2*s.tick())
		place := queued(t, b, w)
		c := s.clock()
		c.after(s.tick())
		queued(t, b, w)
		w.Patience = s.tick() / 2
		queued(t, b, w) // never shortens
		again := s.clock()
		again.before(2 * s.tick())
		if e := waits(t, b, w); e.Place != place {
			t.Fatalf("place %d became %d", place, e.Place)
		}
		MustRelease(t, a, m)
		granted(t, b, w)
	}},
	{"HoldsNobodyBack", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a := s.Open(t)
		dying := s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		w := with(Mutex(r.Name, s.long()), s.tick())
		queued(t, dying, w)
		refused(t, a, Reader(r.Name, s.long()))
		s.die(t, dying, w.Patience)
		MustAcquire(t, a, Reader(r.Name, s.long()))
	}},
	{"ACrowdOfTheDead", func(t *testing.T, s *Stage) {
		// A crashed process leaves so many places that one call can't remove
		// them all: a few calls do, and the first one behind is told.
		dead := 150
		if s.Bubble {
			dead = 1000
		}
		a, b := s.Open(t), s.Open(t)
		dying := s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		patience := 2 * s.tick()
		start := s.clock()
		crowd(t, dying, dead, with(Mutex(m.Name, s.long()), patience))
		if took := time.Since(start.start); took > patience/2 && !s.Bubble {
			t.Logf("the places took %v", took)
		}
		w := with(Mutex(m.Name, s.long()), s.long())
		queued(t, b, w)
		s.die(t, dying, patience)
		MustRelease(t, a, m)
		refused(t, a, Mutex(m.Name, s.long())) // no newcomer passes it meanwhile
		states(t, b, m.Name, driver.Waiting)   // and two calls have not removed them all
		for asks := 1; ; asks++ {
			if _, err := b.Acquire(t.Context(), w); err == nil {
				break
			} else if isHeld(t, err); asks > dead/64+2 {
				t.Fatalf("%d dead places hold it back for more than %d asks", dead, asks)
			}
		}
		states(t, a, m.Name, driver.Held) // it left the line
	}},
	{"TheFirstBehindIsSignalled", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		if _, ok := b.(driver.Watcher); !ok {
			return
		}
		dying := s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		patience := 2 * s.tick()
		crowd(t, dying, 100, with(Mutex(m.Name, s.long()), patience)) // more than one call removes
		ws := line(t, s, b, m.Name, 2)
		first, second := watch(t, b, ws[0]), watch(t, b, ws[1])
		s.die(t, dying, patience)
		MustRelease(t, a, m)
		heard(t, s, first)
		silent(t, s, second)
		MustAcquire(t, b, ws[0])
	}},
}

// crowd has n claims like c take places, all at once: the first must not be dead
// before the last has come.
func crowd(t testing.TB, store driver.Store, n int, c driver.Claim) {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		c := c
		c.ID = NewID()
		wg.Go(func() { // ends with its answer
			var held *driver.HeldError
			if _, err := store.Acquire(t.Context(), c); !errors.As(err, &held) || held.Place == 0 {
				t.Errorf("%q: %v, want a place", c.Name, err)
			}
		})
	}
	wg.Wait()
}

var l27 = parts{
	{"DeadPlace", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		for ahead := range 2 { // of the one whose patience runs out
			m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
			stay := line(t, s, b, m.Name, ahead)
			w := with(Mutex(m.Name, s.long()), s.tick())
			old := queued(t, b, w)
			c := s.clock()
			stay = append(stay, line(t, s, b, m.Name, 1)...)
			c.after(w.Patience)
			gone(t, b, w)
			w.Patience = s.long()
			last := waits(t, b, stay[ahead]).Place
			again := queued(t, b, w)
			newer(t, old, again)
			newer(t, last, again) // at the end
			if e := waits(t, b, w); e.Place != again {
				t.Fatalf("place %d became %d", again, e.Place)
			}
			for _, o := range append(stay, w) {
				MustRelease(t, a, m)
				m = granted(t, b, o)
			}
		}
	}},
	{"LapsedHandOver", func(t *testing.T, s *Stage) {
		if s.Facts.HandOver == 0 {
			s.skip(t, "the store hands nothing over")
		}
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w := with(Mutex(m.Name, s.long()), s.long())
		place := queued(t, b, w)
		MustRelease(t, a, m)
		hs := states(t, a, m.Name, driver.Handed)
		s.clock().after(s.Facts.HandOver)
		gone(t, b, w)
		isNotHeld(t, b.Release(t.Context(), w))
		next, g := MustAcquire(t, a, Mutex(m.Name, s.long()))
		if !g.TookOver {
			t.Fatal("the hand-over lapsed, and TookOver is not set")
		}
		if hs != nil {
			newer(t, hs[0].Token, g.Token)
		}
		newer(t, place, queued(t, b, w))
		MustRelease(t, a, next)
		granted(t, b, w)
	}},
}
