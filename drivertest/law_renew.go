package drivertest

import (
	"errors"
	"testing"

	"github.com/dibslock/dibs/driver"
)

var renewLaws = []law{
	{number: 14, name: "RenewNeverCreates", test: l14.run},
	{number: 15, name: "EachClaimHasItsProof", test: l15.run},
}

var l14 = parts{
	{"Unknown", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := Mutex(fresh(), s.long())
		m.Token = 7
		if e := gone(t, a, m); e.Name != m.Name || e.By != nil {
			t.Fatalf("a claim that never was, on a free name: %+v", e)
		}
		m.Token = 0
		gone(t, a, with(m, s.long())) // and no place either
		states(t, a, m.Name)
		free(t, b, m.Name, s.long())
	}},
	{"Released", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		MustRelease(t, a, m)
		gone(t, a, m)
		free(t, b, m.Name, s.long())
		gone(t, a, m)
	}},
	{"Ended", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
		c := s.clock()
		c.before(m.TTL)
		c.after(m.TTL)
		gone(t, a, m) // nobody else wanted it
		m.Token = 0
		gone(t, a, m)
		free(t, b, m.Name, s.long())
	}},
	{"ByIDAndToken", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		m := Mutex(fresh(), s.long())
		m.Note = "the holder"
		m, g := MustAcquire(t, a, m)
		id, token := m, m
		id.ID = NewID()
		token.Token += 5
		for _, other := range []driver.Claim{id, token} {
			e := gone(t, a, other)
			if e.By == nil {
				if s.knowsHolders(t, a, m.Name) {
					t.Fatal("a store that knows its holders does not name the successor")
				}
				continue
			}
			if e.By.Token != g.Token || e.By.Note != m.Note || e.By.State != driver.Held {
				t.Fatalf("held by %+v, told %+v", m, e.By)
			}
		}
		proved(t, a, m)
		m.Token = 0 // by ID alone
		if p := proved(t, a, m); p.Grant == nil || p.Grant.Token != g.Token || p.Grant.Fence != g.Fence {
			t.Fatalf("granted %+v, proved without a token as %+v", g, p.Grant)
		}
	}},
	{"Extends", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		ttl := 2 * s.tick()
		m, _ := MustAcquire(t, a, Mutex(fresh(), ttl))
		wrong := m
		wrong.Token++
		c := s.clock()
		c.before(ttl)
		if p := proved(t, a, m); p.TTL != ttl {
			t.Fatalf("proved for %v, asked for %v", p.TTL, ttl)
		}
		again := s.clock()
		again.before(ttl)
		gone(t, b, wrong) // extends nothing
		refused(t, b, Mutex(m.Name, ttl))
		again.after(ttl)
		free(t, b, m.Name, ttl)
	}},
	{"NeverShortens", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		ttl := 4 * s.tick()
		m, _ := MustAcquire(t, a, Mutex(fresh(), ttl))
		c := s.clock()
		m.TTL = s.tick()
		proved(t, a, m)
		c.before(ttl)
		refused(t, b, Mutex(m.Name, ttl))
		c.after(ttl)
		free(t, b, m.Name, ttl)
	}},
	{"PromotesNobody", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered || s.Facts.Survival != driver.ByTTL {
			return
		}
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
		w := with(Mutex(m.Name, s.long()), s.long())
		queued(t, b, w)
		s.clock().after(m.TTL)
		waits(t, b, w) // a refreshed place is no ask
		states(t, b, m.Name, driver.Waiting)
		MustAcquire(t, b, w)
	}},
}

var l15 = parts{
	{"Each", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		ttl := s.long()
		held, _ := MustAcquire(t, a, Mutex(fresh(), ttl))
		unproved, g := MustAcquire(t, a, Mutex(fresh(), ttl))
		unproved.Token = 0
		released, _ := MustAcquire(t, a, Mutex(fresh(), ttl))
		MustRelease(t, a, released)
		bad, _ := MustAcquire(t, a, Mutex(fresh(), ttl))
		bad.TTL = -1
		last, _ := MustAcquire(t, a, Mutex(fresh(), ttl))
		ps := renewAll(t, a, released, held, bad, unproved, last, held)
		isNotHeld(t, ps[0].Err)
		isRejected(t, "a bad claim", ps[2].Err)
		for _, i := range []int{1, 3, 4, 5} {
			if ps[i].Err != nil || ps[i].TTL != ttl {
				t.Fatalf("proof %d is %+v", i, ps[i])
			}
			if (ps[i].Grant != nil) != (i == 3) {
				t.Fatalf("proof %d has grant %+v", i, ps[i].Grant)
			}
		}
		if got := *ps[3].Grant; got.Token != g.Token || got.Fence != g.Fence || got.TTL != ttl {
			t.Fatalf("granted %+v, asked for without a token: %+v", g, got)
		}
		if ps := renewAll(t, a); len(ps) != 0 {
			t.Fatalf("%d proofs for nothing", len(ps))
		}
	}},
	{"Revoked", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		power[driver.Revoker](t, s, a)
		held, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		revoke(t, a, m, false)
		ps := renewAll(t, a, held, m, held)
		if !errors.Is(ps[1].Err, driver.ErrRevoked) || ps[0].Err != nil || ps[2].Err != nil {
			t.Fatalf("held, revoked, held: %+v", ps)
		}
	}},
	{"Places", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered || s.Facts.Survival != driver.ByTTL {
			return
		}
		a, b := s.Open(t), s.Open(t)
		busy, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		passed, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		patience := 2 * s.tick()
		waiting := with(Mutex(busy.Name, s.long()), patience)
		silent := with(Mutex(busy.Name, s.long()), patience)
		place := queued(t, b, waiting)
		queued(t, b, silent)
		handed := with(Mutex(passed.Name, 3*s.tick()), patience)
		queued(t, b, handed)
		c := s.clock()
		c.after(s.tick())
		MustRelease(t, a, passed)
		none := with(Mutex(busy.Name, s.long()), patience)
		ps := renewAll(t, b, waiting, handed, none)
		again := s.clock()
		e := isHeld(t, ps[0].Err)
		if e.Place != place || ps[0].Grant != nil {
			t.Fatalf("place %d was refreshed as %+v", place, ps[0])
		}
		if h := e.Holder; h != nil && h.Token != busy.Token {
			t.Fatalf("held under token %d, told %+v", busy.Token, h)
		}
		if ps[1].Err != nil || ps[1].Grant == nil || ps[1].Grant.Token == 0 || ps[1].TTL != handed.TTL || ps[1].Grant.TTL != handed.TTL {
			t.Fatalf("a place that was handed the name: %+v, %+v", ps[1], ps[1].Grant)
		}
		isNotHeld(t, ps[2].Err)
		states(t, a, passed.Name, driver.Held) // and no longer handed
		c.after(patience)
		gone(t, b, silent)
		if s.Bubble {
			again.before(patience)
		}
		waits(t, b, waiting) // it outlives its first patience
		// The other is a claim like any now, for its own TTL from that Renew.
		again.before(handed.TTL)
		refused(t, a, Mutex(passed.Name, s.long()))
		again.after(handed.TTL)
		free(t, a, passed.Name, s.long())
	}},
	{"Many", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		var cs []driver.Claim
		for range min(s.Facts.MaxBatch, 150) {
			c, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
			cs = append(cs, c)
		}
		for i := range cs {
			if i%7 == 3 {
				MustRelease(t, a, cs[i])
			}
		}
		for i, p := range renewAll(t, a, cs...) {
			if i%7 == 3 {
				isNotHeld(t, p.Err)
			} else if p.Err != nil {
				t.Fatalf("claim %d of %d: %v", i, len(cs), p.Err)
			}
		}
	}},
	{"UnknownForAll", func(t *testing.T, s *Stage) {
		a, link := s.Link(t)
		var cs []driver.Claim
		for range 3 {
			c, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
			cs = append(cs, c)
		}
		for _, fault := range Faults {
			link.Set(fault)
			ps, err := a.Renew(bounded(t, s.tick()/2), cs)
			isUnknown(t, fault.String(), err)
			if len(ps) != 0 && len(ps) != len(cs) {
				t.Fatalf("%v: %d proofs for %d claims", fault, len(ps), len(cs))
			}
			for _, p := range ps {
				isUnknown(t, fault.String(), p.Err)
			}
			link.Set(Pass)
			s.Settle()
		}
		for _, p := range renewAll(t, a, cs...) {
			if p.Err != nil {
				t.Fatalf("after the faults: %v", p.Err)
			}
		}
	}},
}

// renewAll renews cs in one call.
func renewAll(t testing.TB, s driver.Store, cs ...driver.Claim) []driver.Proof {
	t.Helper()
	ps, err := s.Renew(t.Context(), cs)
	if err != nil || len(ps) != len(cs) {
		t.Fatalf("renew: %d proofs for %d claims, and: %v", len(ps), len(cs), err)
	}
	return ps
}
