package drivertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var lineLaws = []law{
	{number: 23, name: "OnePlaceFirstComeFirstServed", test: l23.ordered},
	{number: 24, name: "NewcomersDoNotOvertake", test: l24.ordered},
}

// line puts n exclusive claims in line on name, in their order.
func line(t testing.TB, s *Stage, store driver.Store, name string, n int) (ws []driver.Claim) {
	t.Helper()
	for range n {
		w := with(Mutex(name, s.long()), s.long())
		queued(t, store, w)
		ws = append(ws, w)
	}
	return ws
}

var l23 = parts{
	{"OnePlace", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w := with(Mutex(m.Name, s.long()), s.long())
		w.Note = "the waiter"
		place := queued(t, b, w)
		second := with(Mutex(m.Name, s.long()), s.long())
		newer(t, place, queued(t, b, second))
		for range 3 { // however often it asks
			if again := queued(t, b, w); again != place {
				t.Fatalf("place %d, asked again: %d", place, again)
			}
			if e := waits(t, b, w); e.Place != place {
				t.Fatalf("place %d, refreshed: %d", place, e.Place)
			}
		}
		if hs := states(t, a, m.Name, driver.Held, driver.Waiting, driver.Waiting); hs != nil {
			if h := hs[1]; h.Place != place || h.Note != w.Note || h.Token != 0 || h.Units != 1 || h.Capacity != 1 || h.TTL != w.TTL {
				t.Fatalf("place %d of %+v is listed as %+v", place, w, h)
			}
		}
		// Without patience it keeps the place that it has.
		if e := refused(t, b, with(w, 0)); e.Place != place {
			t.Fatalf("place %d, asked without patience: %d", place, e.Place)
		}
		MustRelease(t, b, w)
		states(t, a, m.Name, driver.Held, driver.Waiting)
		refused(t, b, Mutex(m.Name, s.long())) // no patience, no place
		states(t, a, m.Name, driver.Held, driver.Waiting)
	}},
	{"FirstComeFirstServed", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		ws := line(t, s, b, m.Name, 4)
		for i, w := range ws {
			for j := len(ws) - 1; j >= i; j-- { // the order of asking again does not matter
				queued(t, b, ws[j])
			}
			MustRelease(t, a, m)
			m = granted(t, b, w)
			for _, behind := range ws[i+1:] {
				waits(t, b, behind)
			}
		}
		MustRelease(t, a, m)
		free(t, a, m.Name, s.long())
	}},
	{"ReadersDoNotStarveAWriter", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		w := with(Mutex(r.Name, s.long()), s.long())
		queued(t, b, w)
		late := with(Reader(r.Name, s.long()), s.long())
		for range 3 {
			refused(t, a, Reader(r.Name, s.long()))
			queued(t, a, late)
		}
		MustRelease(t, a, r)
		w = granted(t, b, w)
		waits(t, a, late)
		MustRelease(t, b, w)
		granted(t, a, late)
	}},
	{"Random", func(t *testing.T, s *Stage) {
		// Contenders that ask again and again are served in the order of their
		// places.
		const clients = 4
		want, name := 12, fresh()
		if s.Bubble {
			want = 120
		}
		var (
			mu     sync.Mutex // guards served
			served []uint64
			wg     sync.WaitGroup
		)
		for range clients {
			store := s.Open(t)
			wg.Go(func() { // ends when enough were served, however many found it free
				for !t.Failed() {
					w := with(Mutex(name, s.long()), s.long())
					var place uint64
					for {
						_, err := store.Acquire(t.Context(), w)
						if err == nil {
							break
						}
						e, ok := err.(*driver.HeldError)
						if !ok || e.Place == 0 || place != 0 && e.Place != place {
							t.Errorf("place %d, then: %v %+v", place, err, e)
							return
						}
						place = e.Place
						time.Sleep(time.Millisecond + rand.N(3*time.Millisecond))
					}
					mu.Lock()
					if place != 0 {
						served = append(served, place)
					}
					enough := len(served) >= want
					mu.Unlock()
					time.Sleep(rand.N(2 * time.Millisecond))
					if err := store.Release(t.Context(), w); err != nil {
						t.Errorf("release: %v", err)
						return
					}
					if enough {
						return
					}
				}
			})
		}
		wg.Wait()
		if len(served) < want || !slices.IsSorted(served) {
			t.Fatalf("places were served in the order %d", served)
		}
	}},
}

var l24 = parts{
	{"AfterAnEnd", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		dying := s.Open(t)
		m, _ := MustAcquire(t, dying, Mutex(fresh(), s.tick()))
		ws := line(t, s, b, m.Name, 2)
		s.die(t, dying, m.TTL)
		// The name is free, and the newcomer finds it so.
		refused(t, a, Mutex(m.Name, s.long()))
		if s.Facts.HandOver > 0 {
			states(t, a, m.Name, driver.Handed, driver.Waiting)
		}
		w := granted(t, b, ws[0])
		waits(t, b, ws[1])
		MustRelease(t, b, w)
		granted(t, b, ws[1])
	}},
	{"JudgedInTheSameStep", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		dying := s.Open(t)
		m, _ := MustAcquire(t, dying, Mutex(fresh(), s.tick()))
		r := with(Reader(m.Name, s.long()), s.long())
		queued(t, b, r)
		s.die(t, dying, m.TTL)
		MustAcquire(t, a, Reader(m.Name, s.long())) // fits beside the place that it promoted
		granted(t, b, r)
	}},
	{"SecondInLine", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		dying := s.Open(t)
		m, _ := MustAcquire(t, dying, Mutex(fresh(), s.tick()))
		ws := line(t, s, b, m.Name, 2)
		s.die(t, dying, m.TTL)
		queued(t, b, ws[1])
		granted(t, b, ws[0])
		refused(t, a, Mutex(m.Name, s.long()))
	}},
	{"Barging", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		w := with(Mutex(r.Name, s.long()), s.long())
		queued(t, b, w)
		barger := Reader(r.Name, s.long())
		barger.Barging = true
		barger, _ = MustAcquire(t, a, barger)
		refused(t, a, Reader(r.Name, s.long()))
		waits(t, b, w)
		MustRelease(t, a, r)
		waits(t, b, w)
		MustRelease(t, a, barger)
		granted(t, b, w)
		// It passes places, not holders.
		barger.ID = NewID()
		refused(t, a, barger)
	}},
	{"BargingFromTheLine", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		a, b := s.Open(t), s.Open(t)
		p1, _ := MustAcquire(t, a, Permit(fresh(), 2, 4, s.long()))
		p2, _ := MustAcquire(t, a, Permit(p1.Name, 2, 4, s.long()))
		w := with(Permit(p1.Name, 3, 4, s.long()), s.long())
		queued(t, b, w)
		barger := with(Permit(p1.Name, 2, 4, s.long()), s.long())
		barger.Barging = true
		queued(t, b, barger)
		MustRelease(t, a, p2) // lets neither in
		waits(t, b, barger)
		barger, _ = MustAcquire(t, b, barger)
		states(t, a, p1.Name, driver.Held, driver.Held, driver.Waiting) // its place is gone
		waits(t, b, w)
		proved(t, b, barger)
	}},
	{"Random", lineModel},
}

// lineModel plays random steps on one name, without letting time pass, and
// checks every answer and every outcome against the rule for the whole line: the
// live claims and the line are one list, and the live ones are its longest prefix
// that is allowed, apart from those who barged.
func lineModel(t *testing.T, s *Stage) {
	games, steps := 1, 25
	if s.Bubble {
		games, steps = 60, 40
	}
	a, b := s.Open(t), s.Open(t)
	kinds := s.catalog()
	for range games {
		name := fresh()
		var live, waiting []driver.Claim
		story := ""
		let := func() { // who may go in now
			for len(waiting) > 0 && coexist(append(slices.Clip(live), waiting[0])) {
				live, waiting = append(live, waiting[0]), waiting[1:]
			}
		}
		for range steps {
			switch n := rand.IntN(10); {
			case n < 5 || len(live) == 0:
				c := with(kinds[rand.IntN(len(kinds))], s.long())
				c.Name, c.ID, c.Barging = name, NewID(), rand.IntN(5) == 0
				if rand.IntN(4) == 0 {
					c.Patience = 0
				}
				story += fmt.Sprintf("ask %d/%d patient %v barging %v; ", c.Units, c.Capacity, c.Patience > 0, c.Barging)
				fits := coexist(append(slices.Clip(live), c)) && (c.Barging || len(waiting) == 0)
				_, err := a.Acquire(t.Context(), c)
				if fits != (err == nil) {
					t.Fatalf("%s: fits %v, answered %v", story, fits, err)
				}
				if err == nil {
					live = append(live, c)
					break
				}
				if e := isHeld(t, err); (e.Place != 0) != (c.Patience > 0) {
					t.Fatalf("%s: place %d", story, e.Place)
				}
				if c.Patience > 0 {
					waiting = append(waiting, c)
				}
			case n < 8 || len(waiting) == 0:
				i := rand.IntN(len(live))
				story += fmt.Sprintf("release holder %d; ", i)
				MustRelease(t, a, live[i])
				live = slices.Delete(slices.Clone(live), i, i+1)
				let()
			default:
				i := rand.IntN(len(waiting))
				story += fmt.Sprintf("leave place %d; ", i)
				MustRelease(t, b, waiting[i])
				waiting = slices.Delete(slices.Clone(waiting), i, i+1)
				let()
			}
			for i, p := range renewAll(t, a, append(slices.Clip(live), waiting...)...) {
				if i < len(live) && p.Err != nil {
					t.Fatalf("%s: holder %d of %d: %v", story, i, len(live), p.Err)
				}
				if i >= len(live) {
					if p.Err == nil {
						t.Fatalf("%s: place %d of %d was let in", story, i-len(live), len(waiting))
					}
					isHeld(t, p.Err)
				}
			}
		}
	}
}
