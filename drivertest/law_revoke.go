package drivertest

import (
	"errors"
	"testing"

	"github.com/dibslock/dibs/driver"
)

var revokeLaws = []law{
	{number: 22, name: "RevokeTellsTheHolder", test: l22.run},
}

var l22 = parts{
	{"TheHolderIsTold", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		power[driver.Revoker](t, s, b)
		ttl := 4 * s.tick()
		m := Mutex(fresh(), ttl)
		m, g := MustAcquire(t, a, m)
		c := s.clock()
		c.after(s.tick())
		revoke(t, b, m, false)
		revoke(t, b, m, false) // once more is the same
		for _, token := range []uint64{m.Token, 0} {
			m.Token = token
			p := RenewOne(t.Context(), a, m)
			if !errors.Is(p.Err, driver.ErrRevoked) || !errors.Is(p.Err, driver.ErrNotHeld) || p.Grant != nil {
				t.Fatalf("revoked, and proved as %+v", p)
			}
		}
		e := refused(t, a, with(m, s.long())) // its own ID
		if e.Holder == nil || e.Holder.State != driver.Revoked || e.Holder.Token != g.Token {
			t.Fatalf("a repeat of a revoked claim: %+v (%+v)", e, e.Holder)
		}
		states(t, b, m.Name, driver.Revoked)
		refused(t, b, Mutex(m.Name, ttl))
		if s.Facts.Survival != driver.ByTTL {
			return
		}
		c.before(ttl) // of the grant: nothing extended it
		refused(t, b, Mutex(m.Name, ttl))
		c.after(ttl)
		if g := free(t, b, m.Name, ttl); !g.TookOver {
			t.Fatal("the claim before it died, and TookOver is not set")
		}
	}},
	{"TheHolderLetsGo", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		power[driver.Revoker](t, s, b)
		m, _ := MustAcquire(t, a, delay(Mutex(fresh(), s.long()), s.long()))
		revoke(t, b, m, false)
		refused(t, b, Mutex(m.Name, s.long()))
		MustRelease(t, a, m)
		states(t, b, m.Name)
		free(t, b, m.Name, s.long())
		gone(t, a, m)
	}},
	{"NoSuccessorIsHit", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		p := power[driver.Revoker](t, s, b)
		old, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		MustRelease(t, a, old)
		for _, now := range []bool{false, true} {
			r := driver.Revocation{Name: old.Name, Token: old.Token, Now: now}
			if e := isNotHeld(t, p.Revoke(t.Context(), r)); e.By != nil {
				t.Fatalf("nobody holds it, told %+v", e.By)
			}
			m, _ := MustAcquire(t, a, Mutex(old.Name, s.long()))
			for _, token := range []uint64{old.Token, m.Token + 1, 0} {
				r.Token = token
				if e := isNotHeld(t, p.Revoke(t.Context(), r)); e.By != nil && e.By.Token != m.Token {
					t.Fatalf("held under token %d, told %+v", m.Token, e.By)
				}
			}
			proved(t, a, m)
			MustRelease(t, a, m)
		}
	}},
	{"Now", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		power[driver.Revoker](t, s, b)
		take := map[string]func(name string) driver.Claim{
			"held": func(name string) driver.Claim {
				m, _ := MustAcquire(t, a, delay(keep(Mutex(name, s.long()), s.long()), s.long()))
				return m
			},
			"revoked": func(name string) driver.Claim {
				m, _ := MustAcquire(t, a, Mutex(name, s.long()))
				revoke(t, b, m, false)
				return m
			},
			"kept": func(name string) driver.Claim {
				m, _ := MustAcquire(t, a, keep(Mutex(name, s.long()), s.long()))
				MustRelease(t, a, m)
				return m
			},
			"draining": func(name string) driver.Claim {
				dying := s.Open(t)
				m, _ := MustAcquire(t, dying, delay(Mutex(name, s.tick()), s.long()))
				s.die(t, dying, m.TTL)
				return m
			},
		}
		for what, take := range take {
			m := take(fresh())
			refused(t, b, Mutex(m.Name, s.long()))
			w := with(Mutex(m.Name, s.long()), s.long())
			if s.Facts.Ordered {
				queued(t, b, w)
			}
			revoke(t, b, m, true)
			p := RenewOne(t.Context(), a, m)
			if !errors.Is(p.Err, driver.ErrNotHeld) {
				t.Fatalf("%s, then freed: proved as %+v", what, p)
			}
			next := func() driver.Grant { return free(t, b, m.Name, s.long()) }
			if s.Facts.Ordered { // the line moves up
				next = func() driver.Grant {
					p := proved(t, b, w)
					MustRelease(t, b, w)
					return *p.Grant
				}
			}
			if g := next(); !g.TookOver {
				t.Fatalf("%s, then freed: the next grant is %+v", what, g)
			}
			if g := free(t, b, m.Name, s.long()); g.TookOver {
				t.Fatalf("%s, then freed: the grant after the next is %+v", what, g)
			}
			isNotHeld(t, a.Release(t.Context(), m))
		}
	}},
	{"OneOfSeveral", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		a, b := s.Open(t), s.Open(t)
		power[driver.Revoker](t, s, b)
		r1, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		r2, _ := MustAcquire(t, a, Reader(r1.Name, s.long()))
		revoke(t, b, r1, false)
		proved(t, a, r2)
		states(t, b, r1.Name, driver.Revoked, driver.Held)
		refused(t, b, Mutex(r1.Name, s.long())) // it still takes up its unit
		MustRelease(t, a, r2)
		refused(t, b, Mutex(r1.Name, s.long()))
	}},
	{"PlaceThatGrowsDies", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		if _, ok := b.(driver.Revoker); !ok || !s.Facts.Ordered {
			return
		}
		r, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		MustAcquire(t, b, Reader(r.Name, s.long()))
		m := with(into(r, Mutex("", s.long())), s.long())
		queued(t, a, m)
		revoke(t, b, r, false)
		if p := RenewOne(t.Context(), a, m); !errors.Is(p.Err, driver.ErrNotHeld) {
			t.Fatalf("its claim was revoked, and the place that grows is %+v", p)
		}
	}},
	{"Expired", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		p := power[driver.Revoker](t, s, b)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
		s.clock().after(m.TTL)
		isNotHeld(t, p.Revoke(t.Context(), driver.Revocation{Name: m.Name, Token: m.Token}))
	}},
	{"HandedOver", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		power[driver.Revoker](t, s, b)
		if !s.Facts.Ordered || s.Facts.HandOver == 0 {
			return
		}
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w := with(Mutex(m.Name, s.long()), s.long())
		queued(t, b, w)
		MustRelease(t, a, m)
		hs := states(t, b, m.Name, driver.Handed)
		if hs == nil {
			return
		}
		c := s.clock()
		w.Token = hs[0].Token
		revoke(t, a, w, false)
		if p := RenewOne(t.Context(), b, w); !errors.Is(p.Err, driver.ErrRevoked) {
			t.Fatalf("a hand-over was revoked, and proved as %+v", p)
		}
		refused(t, a, Mutex(m.Name, s.long()))
		c.after(s.Facts.HandOver)
		free(t, a, m.Name, s.long())
	}},
	{"Reason", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		p := power[driver.Revoker](t, s, a)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		long := make([]byte, driver.MaxNote+1)
		for i := range long {
			long[i] = 'x'
		}
		isRejected(t, "a long reason", p.Revoke(t.Context(), driver.Revocation{Name: m.Name, Token: m.Token, Reason: string(long)}))
		proved(t, a, m)
	}},
}
