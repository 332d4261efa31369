package drivertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
)

var signalLaws = []law{
	{number: 28, name: "NoLostWakeUp", test: l28.ordered},
	{number: 29, name: "SignalCarriesTheGrant", test: l29.ordered},
	{number: 30, name: "WaitingIsCheap", test: l30.ordered},
}

var l28 = parts{
	{"SubscribeThenAsk", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		w := power[driver.Watcher](t, s, b)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		c := with(Mutex(m.Name, s.long()), s.long())
		// A place may be watched before it is taken, and a signal waits until it
		// is read.
		signals, stop, err := w.Watch(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		place := queued(t, b, c)
		silent(t, s, signals)
		MustRelease(t, a, m)
		time.Sleep(s.tick() / 4)
		if sig := heard(t, s, signals); sig.Place != 0 && sig.Place != place {
			t.Fatalf("place %d, signalled %+v", place, sig)
		}
		c = granted(t, b, c)
		stop()
		stop()
		MustRelease(t, b, c)
	}},
	{"Stopped", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		w := power[driver.Watcher](t, s, b)
		for _, byCtx := range []bool{false, true} {
			m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
			c := with(Mutex(m.Name, s.long()), s.long())
			ctx, cancel := context.WithCancel(t.Context())
			signals, stop, err := w.Watch(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			queued(t, b, c)
			if byCtx {
				cancel()
			} else {
				stop()
			}
			s.Settle()
			if !s.Bubble {
				time.Sleep(s.tick() / 4)
			}
			MustRelease(t, a, m)
			s.Settle()
			select {
			case sig, open := <-signals:
				if open && sig != (driver.Signal{}) {
					t.Fatalf("stopped by ctx %v, and then: %+v", byCtx, sig)
				}
			default:
			}
			stop()
			cancel()
			// And it can be watched again.
			c = granted(t, b, c)
			MustRelease(t, b, c)
			m, _ = MustAcquire(t, a, Mutex(m.Name, s.long()))
			again := watch(t, b, c)
			queued(t, b, c)
			MustRelease(t, a, m)
			heard(t, s, again)
		}
	}},
	{"Each", func(t *testing.T, s *Stage) {
		// Several waiters of one client on one name, and of another client.
		a, b := s.Open(t), s.Open(t)
		power[driver.Watcher](t, s, b)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		var (
			ws      []driver.Claim
			signals []<-chan driver.Signal
		)
		for i := range 4 {
			w := with(Mutex(m.Name, s.long()), s.long())
			store := []driver.Store{a, b}[i%2]
			signals = append(signals, watch(t, store, w))
			queued(t, store, w)
			ws = append(ws, w)
		}
		for i := range ws {
			MustRelease(t, a, m)
			heard(t, s, signals[i])
			for _, behind := range signals[i+1:] {
				silent(t, s, behind)
			}
			m = granted(t, b, ws[i])
		}
	}},
	{"Random", func(t *testing.T, s *Stage) {
		// Nobody polls: a lost wake-up is a waiter that waits for ever.
		const clients = 5
		rounds, name := 6, fresh()
		if s.Bubble {
			rounds = 80
		}
		power[driver.Watcher](t, s, s.Open(t))
		limit := bounded(t, 60*time.Second)
		if s.Bubble {
			limit = bounded(t, s.long()/2)
		}
		var wg sync.WaitGroup
		for range clients {
			store := s.Open(t)
			wg.Go(func() { // ends after its rounds, or with limit
				for range rounds {
					if err := waitBySignals(limit, store, with(Mutex(name, s.long()), s.long())); err != nil {
						t.Errorf("lost a wake-up: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
	}},
}

// waitBySignals waits for c by signals alone, and gives it back after a moment.
func waitBySignals(ctx context.Context, s driver.Store, c driver.Claim) error {
	signals, stop, err := s.(driver.Watcher).Watch(ctx, c)
	if err != nil {
		return err
	}
	defer stop()
	time.Sleep(rand.N(2 * time.Millisecond))
	for {
		_, err := s.Acquire(ctx, c)
		if err == nil {
			break
		}
		if !errors.Is(err, driver.ErrHeld) {
			return err
		}
		select {
		case <-signals:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	time.Sleep(rand.N(2 * time.Millisecond))
	return s.Release(ctx, c)
}

var l29 = parts{
	{"Grant", func(t *testing.T, s *Stage) {
		hand := s.Facts.HandOver
		if hand == 0 {
			s.skip(t, "the store hands nothing over")
		}
		a, b := s.Open(t), s.Open(t)
		power[driver.Watcher](t, s, b)
		for _, tookOver := range []bool{false, true} {
			holder := s.Open(t)
			m, _ := MustAcquire(t, holder, Mutex(fresh(), 2*s.tick()))
			w := with(Mutex(m.Name, s.long()), s.long())
			place := queued(t, b, w)
			signals := watch(t, b, w)
			if tookOver {
				s.die(t, holder, m.TTL)
				refused(t, a, Mutex(m.Name, s.long())) // finds it, and promotes
			} else {
				s.clock().before(m.TTL)
				MustRelease(t, holder, m)
			}
			c := s.clock()
			sig := heard(t, s, signals)
			if sig.Place != place && (sig.Place != 0 || sig.Grant != nil) {
				t.Fatalf("place %d, signalled %+v", place, sig)
			}
			if sig.Grant == nil {
				t.Log("the signal carries no grant")
				granted(t, b, w)
				continue
			}
			g := *sig.Grant
			newer(t, m.Token, g.Token)
			if g.TTL != hand || g.TookOver != tookOver || s.Facts.Fencing != driver.NoFencing && g.Fence != g.Token {
				t.Fatalf("handed over for %v: %+v", hand, g)
			}
			// It was granted for as long as it says, and not shorter.
			c.before(g.TTL)
			refused(t, a, Mutex(m.Name, s.long()))
			w.Token = g.Token
			proved(t, b, w) // by the token that the signal brought
			w.Token = 0
			if p := proved(t, b, w); p.Grant.Token != g.Token || p.Grant.Fence != g.Fence || p.Grant.TookOver != g.TookOver {
				t.Fatalf("signalled %+v, proved %+v", g, *p.Grant)
			}
			if _, again := MustAcquire(t, b, w); again.Token != g.Token || again.Fence != g.Fence || again.TookOver != g.TookOver {
				t.Fatalf("signalled %+v, asked again: %+v", g, again)
			}
		}
	}},
	{"ShortPatience", func(t *testing.T, s *Stage) {
		if s.Facts.HandOver < s.tick() {
			return
		}
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		power[driver.Watcher](t, s, b)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		w := with(Mutex(m.Name, s.long()), s.TTL(s.Facts.HandOver/2))
		queued(t, b, w)
		c := s.clock()
		signals := watch(t, b, w)
		MustRelease(t, a, m)
		if sig := heard(t, s, signals); sig.Grant != nil {
			c.left(t, "trust", sig.Grant.TTL, w.Patience)
			if sig.Grant.TTL > w.Patience {
				t.Fatalf("handed over for %v, with %v of patience", sig.Grant.TTL, w.Patience)
			}
		}
	}},
	{"Readers", func(t *testing.T, s *Stage) {
		s.need(t, driver.Shared|driver.Exclusive)
		a, b := s.Open(t), s.Open(t)
		power[driver.Watcher](t, s, b)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		var tokens, fences []uint64
		var signals []<-chan driver.Signal
		var places []uint64
		for range 3 {
			w := with(Reader(m.Name, s.long()), s.long())
			signals = append(signals, watch(t, b, w))
			places = append(places, queued(t, b, w))
		}
		MustRelease(t, a, m)
		for i, ch := range signals {
			sig := heard(t, s, ch)
			if sig.Grant == nil {
				return // it need not carry one
			}
			if sig.Place != places[i] {
				t.Fatalf("place %d, signalled %+v", places[i], sig)
			}
			tokens, fences = append(tokens, sig.Grant.Token), append(fences, sig.Grant.Fence)
		}
		if tokens[0] == tokens[1] || tokens[1] == tokens[2] || fences[0] != fences[1] || fences[1] != fences[2] {
			t.Fatalf("one generation of readers has tokens %d and fences %d", tokens, fences)
		}
	}},
}

var l30 = parts{
	{"OneIsWoken", func(t *testing.T, s *Stage) {
		a, b := s.Open(t), s.Open(t)
		power[driver.Watcher](t, s, b)
		m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
		ws := line(t, s, b, m.Name, 60)
		var signals []<-chan driver.Signal
		for _, w := range ws {
			signals = append(signals, watch(t, b, w))
		}
		proved(t, a, m) // is no reason to wake anybody
		refused(t, a, Mutex(m.Name, s.long()))
		queued(t, b, ws[30])
		for _, ch := range signals {
			silent(t, s, ch)
		}
		MustRelease(t, a, m)
		heard(t, s, signals[0])
		for _, ch := range signals[1:] {
			silent(t, s, ch)
		}
		w := granted(t, b, ws[0])
		MustRelease(t, b, ws[40]) // nor is a place that leaves from the middle
		MustRelease(t, b, w)
		heard(t, s, signals[1])
		for _, ch := range signals[2:] {
			silent(t, s, ch)
		}
	}},
	{"PlacesAreRefreshedTogether", func(t *testing.T, s *Stage) {
		s.byTTL(t)
		a, b := s.Open(t), s.Open(t)
		var ws []driver.Claim
		patience := 3 * s.tick()
		for range 3 {
			m, _ := MustAcquire(t, a, Mutex(fresh(), s.long()))
			for range 10 {
				w := with(Mutex(m.Name, s.long()), patience)
				queued(t, b, w)
				ws = append(ws, w)
			}
		}
		start := s.clock()
		start.after(s.tick())
		for _, p := range renewAll(t, b, ws...) { // one call
			isHeld(t, p.Err)
		}
		start.after(patience)
		for i, w := range ws {
			if err := RenewOne(t.Context(), b, w).Err; !errors.Is(err, driver.ErrHeld) {
				t.Fatalf("place %d of %d was not refreshed: %v", i, len(ws), err)
			}
		}
	}},
}
