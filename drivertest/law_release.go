package drivertest

import (
	"testing"

	"github.com/dibslock/dibs/driver"
)

var releasingLaws = []law{
	{number: 19, name: "ReleaseCompares", test: l19.run},
	{number: 20, name: "ReleaseIsIdempotent", test: l20.run},
}

var l19 = parts{
	{"IDAndToken", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := Mutex(fresh(), s.long())
		m.Note = "the holder"
		m, g := MustAcquire(t, a, m)
		id, token, none := m, m, m
		id.ID = NewID()
		token.Token++
		none.ID, none.Token = NewID(), 0
		for _, other := range []driver.Claim{id, token, none} {
			e := isNotHeld(t, b.Release(t.Context(), other))
			if e.Name != m.Name {
				t.Fatalf("released %q, told of %q", m.Name, e.Name)
			}
			if h := e.By; h != nil && (h.Token != g.Token || h.Note != m.Note) {
				t.Fatalf("held by %+v, told %+v", m, h)
			} else if h == nil && s.knowsHolders(t, b, m.Name) {
				t.Fatal("a store that knows its holders does not name the successor")
			}
			refused(t, b, Mutex(m.Name, s.long()))
			proved(t, a, m)
		}
	}},
	{"OwnSuccessor", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		first, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		MustRelease(t, a, first)
		second, _ := MustAcquire(t, a, first) // the same ID
		if e := isNotHeld(t, a.Release(t.Context(), first)); e.By != nil && e.By.Token != second.Token {
			t.Fatalf("held under token %d, told %+v", second.Token, e.By)
		}
		refused(t, b, Mutex(first.Name, s.long()))
		proved(t, a, second)
		MustRelease(t, a, second)
		if !s.Facts.Ordered {
			return
		}
		// Nor a place that the same attempt took later.
		m, _ := MustAcquire(t, b, Mutex(first.Name, s.long()))
		w := with(second, s.long())
		queued(t, a, w)
		isNotHeld(t, a.Release(t.Context(), second))
		waits(t, a, w)
		MustRelease(t, b, m)
		granted(t, a, w)
	}},
	{"Expired", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.tick()))
		s.clock().after(m.TTL)
		if e := isNotHeld(t, a.Release(t.Context(), m)); e.By != nil {
			t.Fatalf("nobody holds it, told %+v", e.By)
		}
		next, _ := MustAcquire(t, b, Mutex(m.Name, s.long()))
		isNotHeld(t, a.Release(t.Context(), m))
		m.Token = 0
		isNotHeld(t, a.Release(t.Context(), m))
		proved(t, b, next)
		refused(t, a, Mutex(m.Name, s.long()))
	}},
	{"TakenBack", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		m := Mutex(fresh(), s.long())
		MustAcquire(t, a, m)
		MustRelease(t, a, m) // by ID alone
		free(t, b, m.Name, s.long())
		isNotHeld(t, a.Release(t.Context(), m))
	}},
	{"OneOfSeveral", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		a, b := s.Open(t), s.Open(t)
		r1, _ := MustAcquire(t, a, Reader(fresh(), s.long()))
		r2, _ := MustAcquire(t, b, Reader(r1.Name, s.long()))
		mixed := r1
		mixed.Token = r2.Token
		isNotHeld(t, a.Release(t.Context(), mixed))
		MustRelease(t, a, r1)
		isNotHeld(t, a.Release(t.Context(), r1))
		proved(t, b, r2)
		refused(t, a, Mutex(r1.Name, s.long()))
		MustRelease(t, b, r2)
		free(t, a, r1.Name, s.long())
	}},
}

var l20 = parts{
	{"Repeat", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		MustRelease(t, a, m)
		for range 3 {
			isNotHeld(t, a.Release(t.Context(), m))
		}
		free(t, a, m.Name, s.long())
	}},
	{"HandsOverOnce", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		var line []driver.Claim
		for range 3 {
			w := with(Mutex(m.Name, s.long()), s.long())
			queued(t, b, w)
			line = append(line, w)
		}
		MustRelease(t, a, m)
		for range 3 {
			e := isNotHeld(t, a.Release(t.Context(), m))
			if e.By != nil && e.By.State != driver.Handed {
				t.Fatalf("it was handed over, told %+v", e.By)
			}
		}
		states(t, a, m.Name, driver.Handed, driver.Waiting, driver.Waiting)
		first := granted(t, b, line[0])
		waits(t, b, line[1])
		waits(t, b, line[2])
		isNotHeld(t, a.Release(t.Context(), m))
		proved(t, b, first)
		waits(t, b, line[1])
	}},
	{"Place", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered {
			return
		}
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w1, w2 := with(Mutex(m.Name, s.long()), s.long()), with(Mutex(m.Name, s.long()), s.long())
		queued(t, b, w1)
		queued(t, b, w2)
		MustRelease(t, b, w1)
		isNotHeld(t, b.Release(t.Context(), w1))
		gone(t, b, w1)
		proved(t, a, m)
		waits(t, b, w2)
		states(t, a, m.Name, driver.Held, driver.Waiting)
		MustRelease(t, a, m)
		granted(t, b, w2)
	}},
	{"HandedOver", func(t *testing.T, s *Stage) {
		if !s.Facts.Ordered {
			return
		}
		// A waiter that gives up just after the name was handed to it.
		a, b := s.Open(t), s.Open(t)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w1, w2 := with(Mutex(m.Name, s.long()), s.long()), with(Mutex(m.Name, s.long()), s.long())
		queued(t, b, w1)
		queued(t, b, w2)
		MustRelease(t, a, m)
		MustRelease(t, b, w1)
		isNotHeld(t, b.Release(t.Context(), w1))
		granted(t, b, w2)
	}},
}
