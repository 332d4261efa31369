package drivertest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var exclusionLaws = []law{
	{number: 1, name: "ClaimsThatDoNotFitExclude", test: l1.run},
	{number: 2, name: "Fit", test: l2.run},
}

var l1 = parts{
	{"HolderExcludes", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		name, ttl := fresh(), s.long()
		c, _ := MustAcquire(t, a, Mutex(name, ttl))
		refused(t, b, Mutex(name, ttl))
		refused(t, a, Mutex(name, ttl)) // the same client is another attempt
		proved(t, a, c)
		MustRelease(t, a, c)
		c, _ = MustAcquire(t, b, Mutex(name, ttl))
		refused(t, a, Mutex(name, ttl))
		proved(t, b, c)
	}},
	{"ModesExclude", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		for _, first := range s.catalog() {
			for _, second := range s.catalog() {
				if first.Mode() != driver.Exclusive && second.Mode() != driver.Exclusive {
					continue
				}
				name := fresh()
				first.Name, second.Name = name, name
				first.ID, second.ID = NewID(), NewID()
				MustAcquire(t, a, first)
				refused(t, b, second)
			}
		}
	}},
	{"RenewedHolderExcludes", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		ttl := 2 * s.tick()
		renewed, _ := MustAcquire(t, a, Mutex(fresh(), ttl))
		repeated := Mutex(fresh(), ttl)
		MustAcquire(t, a, repeated)
		c := s.clock()
		c.before(ttl)
		proved(t, a, renewed)
		MustAcquire(t, a, repeated)
		c.after(ttl) // of the grant, not of the proof
		refused(t, b, Mutex(renewed.Name, ttl))
		refused(t, b, Mutex(repeated.Name, ttl))
		proved(t, a, renewed)
	}},
	{"Random", l1Random},
}

// l1Random lets a few clients take, prove, drop and give back claims on one name
// and then looks whether claims that do not fit were trusted together.
func l1Random(t *testing.T, s *Stage) {
	const clients = 4
	rounds, ttl := 12, s.tick()
	if s.Bubble {
		rounds = 150
	}
	name := fresh()
	var (
		mu   sync.Mutex // guards seen
		seen []span
		wg   sync.WaitGroup
	)
	kinds := s.catalog()
	for range clients {
		store := s.Open(t)
		wg.Go(func() { // ends after its rounds
			for range rounds {
				c := kinds[rand.IntN(len(kinds))]
				c.Name, c.ID, c.TTL = name, NewID(), ttl
				c.Barging = rand.IntN(4) == 0
				c.Patience = time.Duration(rand.IntN(2)) * ttl
				asked := time.Now()
				g, err := store.Acquire(t.Context(), c)
				for tries := rand.IntN(4); err != nil && tries > 0; tries-- {
					time.Sleep(rand.N(ttl / 4))
					asked = time.Now()
					g, err = store.Acquire(t.Context(), c)
				}
				if err != nil {
					store.Release(t.Context(), c) // its place, if it has one
					continue
				}
				c.Token = g.Token
				sp := span{c, time.Now(), asked.Add(g.TTL)}
				time.Sleep(rand.N(ttl / 2))
				if rand.IntN(2) == 0 {
					asked := time.Now()
					if RenewOne(t.Context(), store, c).Err == nil {
						sp.to = asked.Add(c.TTL)
					}
					time.Sleep(rand.N(ttl / 2))
				}
				if drop := rand.IntN(4) == 0; !drop || s.Facts.Survival != driver.ByTTL {
					sp.to = earlier(sp.to, time.Now())
					store.Release(t.Context(), c)
				}
				mu.Lock()
				seen = append(seen, sp)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Logf("%d grants", len(seen))
	if len(seen) < rounds/8 {
		t.Fatalf("only %d grants in %d rounds", len(seen), clients*rounds)
	}
	checkSpans(t, seen)
}

// span is the time for which a claim was trusted.
type span struct {
	driver.Claim
	from, to time.Time
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// checkSpans checks that whatever was trusted at one time fits together.
func checkSpans(t testing.TB, seen []span) {
	t.Helper()
	slices.SortFunc(seen, func(a, b span) int { return a.from.Compare(b.from) })
	for i, sp := range seen {
		together := []driver.Claim{sp.Claim}
		for _, o := range seen[:i] {
			if o.to.After(sp.from) {
				together = append(together, o.Claim)
			}
		}
		if sp.to.After(sp.from) && !coexist(together) {
			t.Fatalf("trusted together: %+v", together)
		}
	}
}

// coexist is law 2 as a property of a whole set, in words of its own.
func coexist(cs []driver.Claim) bool {
	if len(cs) < 2 {
		return true
	}
	var sum int64
	for _, c := range cs {
		if c.Units == c.Capacity {
			return false // it wants to be alone
		}
		sum += int64(c.Units)
	}
	least := slices.MinFunc(cs, func(a, b driver.Claim) int { return cmp.Compare(a.Capacity, b.Capacity) })
	return sum <= int64(least.Capacity)
}

// catalog has claims of every mode that the store grants, without names.
func (s *Stage) catalog() []driver.Claim {
	all := []driver.Claim{
		Mutex("", s.long()),
		Permit("", 3, 3, s.long()), // exclusive too
		Reader("", s.long()),
		Permit("", 1, 2, s.long()),
		Permit("", 1, 3, s.long()),
		Permit("", 2, 3, s.long()),
		Permit("", 2, 5, s.long()),
	}
	return slices.DeleteFunc(all, func(c driver.Claim) bool { return !s.has(c.Mode()) })
}

var l2 = parts{
	{"EverySmallCase", func(t *testing.T, s *Stage) {
		// Every sequence of a few claims, against the rule for the whole set.
		depth := 3
		if s.Bubble {
			depth = 4
		}
		store, kinds := s.Open(t), s.catalog()
		var walk func(path []driver.Claim)
		walk = func(path []driver.Claim) {
			if len(path) == depth {
				tryPath(t, store, path)
				return
			}
			for _, k := range kinds {
				walk(append(slices.Clip(path), k))
			}
		}
		walk(nil)
	}},
	{"Overflow", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		store, name := s.Open(t), fresh()
		MustAcquire(t, store, Permit(name, driver.MaxUnits-1, driver.MaxUnits, s.long()))
		refused(t, store, Permit(name, driver.MaxUnits-1, driver.MaxUnits, s.long()))
		refused(t, store, Permit(name, 2, driver.MaxUnits, s.long()))
		MustAcquire(t, store, Permit(name, 1, driver.MaxUnits, s.long()))
		refused(t, store, Permit(name, 1, driver.MaxUnits, s.long()))
		if s.has(driver.Shared) {
			refused(t, store, Reader(name, s.long()))
		}
	}},
	{"ManyReaders", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		store, name := s.Open(t), fresh()
		for range 40 {
			MustAcquire(t, store, Reader(name, s.long()))
		}
		refused(t, store, Mutex(name, s.long()))
	}},
	{"RollingLimit", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		// A limit of 4 that becomes 2, and then 5.
		store, name := s.Open(t), fresh()
		first, _ := MustAcquire(t, store, Permit(name, 1, 4, s.long()))
		second, _ := MustAcquire(t, store, Permit(name, 1, 4, s.long()))
		refused(t, store, Permit(name, 1, 2, s.long()))
		MustRelease(t, store, first)
		low, _ := MustAcquire(t, store, Permit(name, 1, 2, s.long()))
		refused(t, store, Permit(name, 1, 4, s.long())) // the smallest live capacity counts
		MustRelease(t, store, low)
		MustAcquire(t, store, Permit(name, 3, 5, s.long())) // 1 of 4 and 3 of 5
		refused(t, store, Permit(name, 1, 5, s.long()))
		MustRelease(t, store, second)
		MustAcquire(t, store, Permit(name, 1, 5, s.long()))
	}},
	{"NothingFitsBehindAPlace", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered {
			return
		}
		store, ttl := s.Open(t), s.long()
		if s.has(driver.Shared) {
			name := fresh()
			MustAcquire(t, store, Reader(name, ttl))
			queued(t, store, with(Mutex(name, ttl), ttl))
			refused(t, store, Reader(name, ttl))
		}
		if s.has(driver.Counted) {
			name := fresh()
			MustAcquire(t, store, Permit(name, 2, 4, ttl))
			queued(t, store, with(Permit(name, 3, 4, ttl), ttl))
			refused(t, store, Permit(name, 1, 4, ttl))
		}
	}},
}

// tryPath asks for path's claims one after the other on a fresh name and checks
// each answer. It gives back what was granted.
func tryPath(t testing.TB, store driver.Store, path []driver.Claim) {
	t.Helper()
	name := fresh()
	var live []driver.Claim
	var story strings.Builder
	for _, c := range path {
		c.Name, c.ID = name, NewID()
		fmt.Fprintf(&story, " %d/%d", c.Units, c.Capacity)
		g, err := store.Acquire(t.Context(), c)
		fits := coexist(append(slices.Clip(live), c))
		if fits != (err == nil) {
			t.Fatalf("asked for%s: fits %v, answered %v", story.String(), fits, err)
		}
		if err != nil {
			isHeld(t, err)
			continue
		}
		c.Token = g.Token
		live = append(live, c)
	}
	for _, c := range live {
		MustRelease(t, store, c)
	}
}
