package drivertest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var batchLaws = []law{
	{number: 45, name: "AllOrNone", test: l45.run},
}

var l45 = parts{
	{"All", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		p := power[driver.Batcher](t, s, a)
		var cs []driver.Claim
		for i, c := range s.catalog() {
			c.Name, c.ID, c.TTL = fresh(), NewID(), s.long()+time.Duration(i)*s.tick()
			cs = append(cs, c)
		}
		given := slices.Clone(cs)
		given[0].TTL -= s.Facts.Step / 2 // is rounded up, and not in the caller's slice
		want := slices.Clone(given)
		gs, err := p.AcquireAll(t.Context(), given)
		if !slices.Equal(given, want) {
			t.Fatalf("the caller's claims changed from %+v to %+v", want, given)
		}
		if err != nil || len(gs) != len(cs) {
			t.Fatalf("%d grants for %d claims, and: %v", len(gs), len(cs), err)
		}
		again, err := p.AcquireAll(t.Context(), cs) // a repeat, as after a lost answer
		if err != nil || len(again) != len(cs) {
			t.Fatalf("repeated: %d grants, and: %v", len(again), err)
		}
		for i, c := range cs {
			if gs[i].Token == 0 || again[i].Token != gs[i].Token || gs[i].TTL != c.TTL {
				t.Fatalf("claim %d: granted %+v, repeated %+v", i, gs[i], again[i])
			}
			c.Token = gs[i].Token // in their order
			proved(t, a, c)
			refused(t, b, Mutex(c.Name, s.long()))
			MustRelease(t, a, c)
			free(t, b, c.Name, s.long())
		}
		if gs, err := p.AcquireAll(t.Context(), nil); err != nil || len(gs) != 0 {
			t.Fatalf("nothing at all: %v, %v", gs, err)
		}
	}},
	{"None", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		p := power[driver.Batcher](t, s, a)
		for i := range 3 { // whichever is in the way
			cs := []driver.Claim{Mutex(fresh(), s.long()), Mutex(fresh(), s.long()), Mutex(fresh(), s.long())}
			for j := range cs {
				cs[j].Patience = s.long() // is ignored
			}
			m, _ := MustAcquire(t, b, Mutex(cs[i].Name, s.long()))
			gs, err := p.AcquireAll(t.Context(), cs)
			if e := isHeld(t, err); e.Name != m.Name || e.Place != 0 || len(gs) != 0 || e.Holder != nil && e.Holder.Token != m.Token {
				t.Fatalf("%q is in the way: %+v, with %d grants", m.Name, e, len(gs))
			}
			for j, c := range cs {
				if j != i {
					free(t, b, c.Name, s.long())
				}
				isNotHeld(t, a.Release(t.Context(), c)) // no claim and no place
			}
			states(t, b, m.Name, driver.Held)
			MustRelease(t, b, m)
		}
	}},
	{"Behind", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		p := power[driver.Batcher](t, s, a)
		if !s.Facts.Ordered {
			return
		}
		r, _ := MustAcquire(t, b, Reader(fresh(), s.long()))
		queued(t, b, with(Mutex(r.Name, s.long()), s.long()))
		other := Mutex(fresh(), s.long())
		_, err := p.AcquireAll(t.Context(), []driver.Claim{other, Reader(r.Name, s.long())})
		isHeld(t, err) // a batch overtakes nobody
		free(t, b, other.Name, s.long())
	}},
	{"DistinctNames", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		p := power[driver.Batcher](t, s, a)
		name := fresh()
		_, err := p.AcquireAll(t.Context(), []driver.Claim{Mutex(name, s.long()), Mutex(name, s.long())})
		isRejected(t, "one name twice", err)
		free(t, b, name, s.long())
	}},
	{"Random", func(t *testing.T, s *Stage) {
		// Overlapping batches never deadlock and are never held in part.
		const clients = 4
		turns := 3
		if s.Bubble {
			turns = 30
		}
		power[driver.Batcher](t, s, s.Open(t))
		names := []string{fresh(), fresh(), fresh()}
		var (
			mu      sync.Mutex // guards holder
			holder  = make(map[string]int)
			wg      sync.WaitGroup
			account = func(cs []driver.Claim, by, was int) {
				mu.Lock()
				defer mu.Unlock()
				for _, c := range cs {
					if holder[c.Name] != was {
						t.Errorf("%q is held by two", c.Name)
					}
					holder[c.Name] = by
				}
			}
		)
		for i := range clients {
			store := s.Open(t)
			wg.Go(func() { // ends after its turns
				late := time.Now().Add(time.Minute)
				for had := 0; had < turns && !t.Failed(); {
					if time.Now().After(late) {
						t.Errorf("client %d had %d of %d turns: is something held in part?", i, had, turns)
						return
					}
					var cs []driver.Claim
					skip := rand.IntN(3)
					for _, j := range rand.Perm(3) {
						if j != skip {
							cs = append(cs, Mutex(names[j], s.long()))
						}
					}
					_, err := store.(driver.Batcher).AcquireAll(t.Context(), cs)
					if errors.Is(err, driver.ErrHeld) {
						time.Sleep(rand.N(2 * time.Millisecond))
						continue
					}
					if err != nil {
						t.Errorf("acquire all: %v", err)
						return
					}
					had++
					account(cs, i+1, 0)
					time.Sleep(rand.N(2 * time.Millisecond))
					account(cs, 0, i+1)
					for _, c := range cs {
						if err := store.Release(t.Context(), c); err != nil {
							t.Errorf("release: %v", err)
						}
					}
				}
			})
		}
		wg.Wait()
	}},
}
