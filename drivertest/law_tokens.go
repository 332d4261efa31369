package drivertest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var tokenLaws = []law{
	{number: 11, name: "TokensGrow", test: l11.run},
	{number: 11, name: "JournalTellsEveryToken", test: l11Journal.run},
	{number: 12, name: "FencesOrderGenerations", test: l12.run},
	{number: 13, name: "TokensAreExact", test: l13.run},
}

var l11 = parts{
	{"AcrossEveryEnd", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		name, ttl := fresh(), s.long()
		var last uint64
		next := func(store driver.Store, m driver.Claim) driver.Claim {
			t.Helper()
			m, _ = MustAcquire(t, store, m)
			newer(t, last, m.Token)
			last = m.Token
			return m
		}
		for range 20 { // each release leaves the name idle
			MustRelease(t, a, next(a, Mutex(name, ttl)))
			MustRelease(t, b, next(b, Mutex(name, ttl)))
		}
		dying := s.Open(t)
		short := next(dying, Mutex(name, s.tick()))
		s.die(t, dying, short.TTL)
		m := next(b, Mutex(name, ttl))
		if _, ok := a.(driver.Revoker); ok {
			revoke(t, a, m, true)
			m = next(b, Mutex(name, ttl))
		}
		if s.Facts.Ordered {
			w := with(Mutex(name, ttl), ttl)
			queued(t, a, w)
			MustRelease(t, b, m)
			w = granted(t, a, w)
			newer(t, last, w.Token)
			last, m = w.Token, w
			MustRelease(t, a, m)
			m = next(b, Mutex(name, ttl))
			// A place that comes and goes takes nothing back.
			w.ID = NewID()
			queued(t, a, w)
			w.Token = 0
			MustRelease(t, a, w)
		}
		MustRelease(t, b, m)
		next(a, Mutex(name, ttl))
	}},
	{"WhileOthersLive", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		a, name := s.Open(t), fresh()
		var last uint64
		for range 5 {
			r, _ := MustAcquire(t, a, Reader(name, s.long()))
			newer(t, last, r.Token)
			last = r.Token
		}
	}},
	{"OtherNamesDoNotMatter", func(t *testing.T, s *Stage) {
		// Also if other names, with larger tokens, are forgotten between.
		a, name := s.Open(t), fresh()
		m, _ := MustAcquire(t, a, Mutex(name, s.long()))
		for range 30 {
			free(t, a, fresh(), s.long())
		}
		busy := fresh()
		var last uint64
		for range 10 {
			last = free(t, a, busy, s.long()).Token
		}
		MustRelease(t, a, m)
		again, _ := MustAcquire(t, a, Mutex(name, s.long()))
		newer(t, m.Token, again.Token)
		newer(t, last, free(t, a, busy, s.long()).Token)
	}},
	{"Unique", func(t *testing.T, s *Stage) {
		const clients = 4
		rounds, name := 15, fresh()
		if s.Bubble {
			rounds = 200
		}
		var (
			mu   sync.Mutex // guards seen
			seen = make(map[uint64]bool)
			wg   sync.WaitGroup
		)
		// Tries that meet a held name count for nothing: it goes on until there
		// are enough grants, which a store that grants has in no time.
		enough := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seen) >= rounds
		}
		end := time.Now().Add(time.Minute)
		for range clients {
			store := s.Open(t)
			wg.Go(func() { // ends with enough grants, an error or the minute
				for !enough() && !t.Failed() && time.Now().Before(end) {
					m := Mutex(name, s.long())
					g, err := store.Acquire(t.Context(), m)
					if err != nil {
						time.Sleep(time.Millisecond)
						continue
					}
					mu.Lock()
					if seen[g.Token] || g.Token == 0 {
						t.Errorf("token %d twice, or 0", g.Token)
					}
					seen[g.Token] = true
					mu.Unlock()
					if err := store.Release(t.Context(), m); err != nil {
						t.Errorf("release: %v", err)
					}
				}
			})
		}
		wg.Wait()
		if len(seen) < rounds {
			t.Fatalf("only %d grants", len(seen))
		}
	}},
}

var l11Journal = parts{
	{"EveryStep", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		name, ttl := fresh(), s.long()
		first := Mutex(name, ttl)
		first.Note = "the first"
		first, g := MustAcquire(t, a, first)
		start, on := events(t, a, name, 0)
		if !on {
			s.skip(t, "the store has no journal")
		}
		want := []driver.Event{{Kind: driver.EventGranted, Token: g.Token, Fence: g.Fence, Note: "the first"}}
		add := func(kind driver.EventKind, token uint64, tookOver bool) {
			want = append(want, driver.Event{Kind: kind, Token: token, TookOver: tookOver})
		}
		free(t, a, fresh(), ttl) // another name
		MustAcquire(t, a, first) // a repeat is no event
		proved(t, a, first)
		refused(t, b, Mutex(name, ttl))
		MustRelease(t, a, first)
		add(driver.EventReleased, first.Token, false)
		if s.Facts.Survival == driver.ByTTL {
			short, _ := MustAcquire(t, a, Mutex(name, s.tick()))
			s.clock().after(short.TTL)
			m, _ := MustAcquire(t, b, Mutex(name, ttl))
			add(driver.EventGranted, short.Token, false)
			add(driver.EventExpired, short.Token, false)
			add(driver.EventGranted, m.Token, true)
			MustRelease(t, b, m)
			add(driver.EventReleased, m.Token, false)
		}
		if s.Facts.Ordered {
			m, _ := MustAcquire(t, a, Mutex(name, ttl))
			w := with(Mutex(name, ttl), ttl)
			queued(t, b, w)
			MustRelease(t, a, m)
			w = granted(t, b, w)
			MustRelease(t, b, w)
			add(driver.EventGranted, m.Token, false)
			add(driver.EventReleased, m.Token, false)
			add(driver.EventHanded, w.Token, false)
			add(driver.EventReleased, w.Token, false)
		}
		if _, ok := a.(driver.Revoker); ok {
			m, _ := MustAcquire(t, a, Mutex(name, ttl))
			revoke(t, b, m, false)
			revoke(t, b, m, true)
			add(driver.EventGranted, m.Token, false)
			add(driver.EventRevoked, m.Token, false)
			add(driver.EventRevoked, m.Token, false)
			want[len(want)-1].Now = true
		}
		old, _ := MustAcquire(t, a, Mutex(name, ttl))
		next, _ := MustAcquire(t, a, into(old, Mutex(name, ttl)))
		MustRelease(t, a, next)
		revoked := want[len(want)-1].Kind == driver.EventRevoked
		add(driver.EventGranted, old.Token, revoked)
		add(driver.EventReleased, old.Token, false)
		add(driver.EventGranted, next.Token, false)
		add(driver.EventReleased, next.Token, false)
		got, _ := events(t, b, name, 0) // shared by all users
		if len(got) != len(want) {
			t.Fatalf("%d events, want %d:\n%+v", len(got), len(want), got)
		}
		for i, w := range want {
			e := got[i]
			if e.Kind != w.Kind || e.Token != w.Token || e.TookOver != w.TookOver || e.Now != w.Now || e.Name != name ||
				e.Units != 1 || e.Capacity != 1 || w.Fence != 0 && e.Fence != w.Fence || w.Note != "" && e.Note != w.Note {
				t.Fatalf("event %d is %+v, want %+v", i, e, w)
			}
			if e.Kind == driver.EventRevoked && e.Reason != "a law's test" {
				t.Fatalf("the reason is lost: %+v", e)
			}
			if i > 0 && (e.Seq <= got[i-1].Seq || e.At.Before(got[i-1].At)) {
				t.Fatalf("events out of order: %+v, %+v", got[i-1], e)
			}
		}
		if rest, _ := events(t, a, name, got[1].Seq); len(rest) != len(got)-2 || rest[0] != got[2] {
			t.Fatalf("after %d: %+v", got[1].Seq, rest)
		}
		if start[0] != got[0] {
			t.Fatalf("an event changed from %+v to %+v", start[0], got[0])
		}
	}},
}

// events returns the journal of name after seq; on is false if there is none.
func events(t testing.TB, s driver.Store, name string, seq uint64) (es []driver.Event, on bool) {
	t.Helper()
	j, ok := s.(driver.Journal)
	if !ok {
		return nil, false
	}
	for e, err := range j.Events(t.Context(), name, seq) {
		if errors.Is(err, errors.ErrUnsupported) {
			return nil, false
		}
		if err != nil {
			t.Fatalf("events: %v", err)
		}
		es = append(es, e)
	}
	return es, true
}

var l12 = parts{
	{"Generations", func(t *testing.T, s *Stage) {
		if s.Facts.Fencing == driver.NoFencing {
			s.skip(t, "the store has no fencing")
		}
		a, b := s.Open(t), s.Open(t)
		name, ttl := fresh(), s.long()
		var last uint64
		for range 3 {
			m, g := MustAcquire(t, a, Mutex(name, ttl))
			if g.Fence != g.Token {
				t.Fatalf("an exclusive grant of token %d has fence %d", g.Token, g.Fence)
			}
			newer(t, last, g.Fence)
			last = g.Fence
			MustRelease(t, a, m)
			if !s.has(driver.Shared) {
				continue
			}
			r1, g1 := MustAcquire(t, a, Reader(name, ttl))
			newer(t, last, g1.Fence)
			last = g1.Fence
			r2, g2 := MustAcquire(t, b, Reader(name, ttl))
			MustRelease(t, a, r1) // the first one out is not the last
			r3, g3 := MustAcquire(t, a, Reader(name, ttl))
			MustRelease(t, b, r2)
			r4, g4 := MustAcquire(t, b, Reader(name, ttl))
			if g2.Fence != last || g3.Fence != last || g4.Fence != last {
				t.Fatalf("one generation of readers has fences %d, %d, %d, %d", g1.Fence, g2.Fence, g3.Fence, g4.Fence)
			}
			newer(t, g1.Token, g2.Token)
			MustRelease(t, a, r3)
			MustRelease(t, b, r4)
			next, g5 := MustAcquire(t, a, Reader(name, ttl)) // a generation without a writer between
			newer(t, last, g5.Fence)
			last = g5.Fence
			MustRelease(t, a, next)
		}
	}},
	{"DrainingReadersAreOfTheGeneration", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		if s.Facts.Fencing == driver.NoFencing {
			return
		}
		a, name := s.Open(t), fresh()
		r := Reader(name, s.long())
		r.Keep = 3 * s.tick()
		r, kept := MustAcquire(t, a, r)
		MustRelease(t, a, r)
		_, g := MustAcquire(t, a, Reader(name, s.tick()))
		if g.Fence != kept.Fence {
			t.Fatalf("a kept reader has fence %d, the next %d", kept.Fence, g.Fence)
		}
		dying, name := s.Open(t), fresh()
		r = Reader(name, s.tick())
		r.Delay = 5 * s.tick()
		_, first := MustAcquire(t, dying, r)
		s.die(t, dying, r.TTL)
		_, g = MustAcquire(t, a, Reader(name, s.tick()))
		if g.Fence != first.Fence {
			t.Fatalf("a draining reader has fence %d, the next %d", first.Fence, g.Fence)
		}
	}},
	{"HandedReadersAreOneGeneration", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared)
		if !s.Facts.Ordered || s.Facts.Fencing == driver.NoFencing {
			return
		}
		a, name := s.Open(t), fresh()
		m, g := MustAcquire(t, a, Mutex(name, s.long()))
		r1, r2 := with(Reader(name, s.long()), s.long()), with(Reader(name, s.long()), s.long())
		queued(t, a, r1)
		queued(t, a, r2)
		MustRelease(t, a, m)
		p1, p2 := proved(t, a, r1), proved(t, a, r2)
		newer(t, g.Fence, p1.Grant.Fence)
		if p1.Grant.Fence != p2.Grant.Fence {
			t.Fatalf("readers that were let in together have fences %d and %d", p1.Grant.Fence, p2.Grant.Fence)
		}
	}},
	{"AWriterInLineEndsTheGeneration", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		if !s.Facts.Ordered || s.Facts.Fencing == driver.NoFencing {
			return
		}
		a, name := s.Open(t), fresh()
		r, g := MustAcquire(t, a, Reader(name, s.long()))
		w, next := with(Mutex(name, s.long()), s.long()), with(Reader(name, s.long()), s.long())
		queued(t, a, w)
		queued(t, a, next)
		MustRelease(t, a, r)
		p := proved(t, a, w)
		newer(t, g.Fence, p.Grant.Fence)
		MustRelease(t, a, w)
		newer(t, p.Grant.Fence, proved(t, a, next).Grant.Fence)
	}},
	{"CountedHaveNone", func(t *testing.T, s *Stage) {
		s.need(t, driver.Counted)
		a, name := s.Open(t), fresh()
		for range 2 {
			if _, g := MustAcquire(t, a, Permit(name, 1, 3, s.long())); g.Fence != 0 {
				t.Fatalf("a counted claim has fence %d", g.Fence)
			}
		}
	}},
}

var l13 = parts{
	{"NeighboursAreOthers", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		m, g := MustAcquire(t, a, Mutex(fresh(), s.long()))
		for _, near := range []uint64{m.Token - 1, m.Token + 1} {
			if near == 0 {
				continue // it stands for any
			}
			other := m
			other.Token = near
			gone(t, a, other)
			isNotHeld(t, a.Release(t.Context(), other))
			if p, ok := a.(driver.Revoker); ok {
				isNotHeld(t, p.Revoke(t.Context(), driver.Revocation{Name: m.Name, Token: near, Now: true}))
			}
		}
		proved(t, a, m)
		if hs, ok := list(t, a, m.Name); ok && (len(hs) != 1 || hs[0].Token != m.Token || hs[0].Fence != g.Fence) {
			t.Fatalf("granted %+v, listed %+v", g, hs)
		}
		if es, ok := events(t, a, m.Name, 0); ok && (len(es) != 1 || es[0].Token != m.Token || es[0].Fence != g.Fence) {
			t.Fatalf("granted %+v, written %+v", g, es)
		}
		if h := refused(t, a, Mutex(m.Name, s.long())).Holder; h != nil && h.Token != m.Token {
			t.Fatalf("token %d is told as %d", m.Token, h.Token)
		}
		MustRelease(t, a, m)
		again, _ := MustAcquire(t, a, Mutex(m.Name, s.long()))
		newer(t, m.Token, again.Token)
	}},
	{"RecordsKeepThem", func(t *testing.T, s *Stage) {
		a := s.Open(t)
		p, ok := records(t, a)
		if !ok {
			return
		}
		for _, token := range []uint64{1<<53 + 1, 1_900_000_000_000_001, 1<<62 + 1} {
			r := driver.Record{Key: fresh(), TokenName: fresh(), Token: token, Retention: time.Hour}
			r.Version = put(t, p, r)
			if got := get(t, p, r.Key); got.Token != token {
				t.Fatalf("token %d came back as %d", token, got.Token)
			}
			r.Token--
			if _, err := p.Put(t.Context(), r); !errors.Is(err, driver.ErrFenced) {
				t.Fatalf("token %d after %d: %v", r.Token, token, err)
			}
		}
	}},
}
