package memlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/memlock"
)

func TestClientsShareTheMemory(t *testing.T) {
	t.Parallel()
	a := memlock.New(memlock.Options{})
	b := a.Client()
	m, _ := drivertest.MustAcquire(t, a, drivertest.Mutex("x", time.Minute))
	if _, err := b.Acquire(t.Context(), drivertest.Mutex("x", time.Minute)); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("held through one client, asked through the other: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatalf("closed again: %v", err)
	}
	drivertest.MustRelease(t, a, m) // it has a Close of its own
	other := memlock.New(memlock.Options{})
	drivertest.MustAcquire(t, a, drivertest.Mutex("x", time.Minute))
	drivertest.MustAcquire(t, other, drivertest.Mutex("x", time.Minute))
}

func TestFacts(t *testing.T) {
	t.Parallel()
	f := memlock.New(memlock.Options{}).Facts()
	if f.Driver != "mem" || f.Survival != driver.ByTTL || f.Modes != driver.Exclusive|driver.Shared|driver.Counted ||
		f.Fencing != driver.WhileUp || !f.Ordered || f.HandOver != 2*time.Second || f.Slack != 0 || f.Waives != nil {
		t.Fatalf("%+v", f)
	}
	if f := memlock.New(memlock.Options{Modes: driver.Shared}).Facts(); f.Modes != driver.Shared {
		t.Fatalf("asked for shared alone: %v", f.Modes)
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{Mark: 41})
	if _, g := drivertest.MustAcquire(t, s, drivertest.Mutex("x", time.Minute)); g.Token != 42 {
		t.Fatalf("token %d after mark 41", g.Token)
	}
}

func TestEndedContextChangesNothing(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{})
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("x", time.Minute))
	why := errors.New("the caller went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := s.Release(ctx, m); !errors.Is(err, why) {
		t.Fatalf("release: %v", err)
	}
	other := drivertest.Mutex("y", time.Minute)
	if _, err := s.Acquire(ctx, other); !errors.Is(err, why) {
		t.Fatalf("acquire: %v", err)
	}
	if drivertest.RenewOne(t.Context(), s, m).Err != nil || !errors.Is(s.Release(t.Context(), other), driver.ErrNotHeld) {
		t.Fatal("a call with an ended ctx did something")
	}
}

func TestRenewIsBounded(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{})
	cs := make([]driver.Claim, s.Facts().MaxBatch+1)
	for i := range cs {
		cs[i] = drivertest.Mutex("x", time.Minute)
	}
	if ps, err := s.Renew(t.Context(), cs); !errors.Is(err, driver.ErrRejected) || len(ps) != 0 {
		t.Fatalf("%d claims: %d proofs, %v", len(cs), len(ps), err)
	}
	if ps, err := s.Renew(t.Context(), cs[1:]); err != nil || len(ps) != len(cs)-1 {
		t.Fatalf("%d claims: %d proofs, %v", len(cs)-1, len(ps), err)
	}
}

// A signal that was not read is replaced by a newer one.
func TestSignalsCoalesce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memlock.New(memlock.Options{})
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("x", time.Minute))
		w := drivertest.Mutex("x", time.Minute)
		w.Patience = time.Minute
		signals, stop, err := s.Watch(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if cap(signals) != 1 {
			t.Fatalf("capacity %d", cap(signals))
		}
		var last uint64
		for range 3 { // handed over, and lost again
			if _, err := s.Acquire(t.Context(), w); !errors.Is(err, driver.ErrHeld) {
				t.Fatal(err)
			}
			drivertest.MustRelease(t, s, m)
			p := drivertest.RenewOne(t.Context(), s, w)
			if p.Err != nil {
				t.Fatal(p.Err)
			}
			last = p.Grant.Token
			drivertest.MustRelease(t, s, w)
			m, _ = drivertest.MustAcquire(t, s, drivertest.Mutex("x", time.Minute))
		}
		if sig := <-signals; sig.Grant == nil || sig.Grant.Token != last {
			t.Fatalf("the newest grant has token %d, signalled %+v", last, sig)
		}
		select {
		case sig := <-signals:
			t.Fatalf("an old signal is left: %+v", sig)
		default:
		}
	})
}

func TestLaterWatchReplacesTheFirst(t *testing.T) {
	t.Parallel()
	a := memlock.New(memlock.Options{})
	b := a.Client()
	m, _ := drivertest.MustAcquire(t, a, drivertest.Mutex("x", time.Minute))
	w := drivertest.Mutex("x", time.Minute)
	w.Patience = time.Minute
	first, stopFirst, err := a.Watch(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	second, stopSecond, err := b.Watch(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	defer stopSecond()
	stopFirst() // does not stop the second
	if err := a.Close(); err != nil {
		t.Fatal(err) // nor does this
	}
	if _, err := b.Acquire(t.Context(), w); !errors.Is(err, driver.ErrHeld) {
		t.Fatal(err)
	}
	drivertest.MustRelease(t, b, m)
	if sig := <-second; sig.Grant == nil {
		t.Fatalf("signalled %+v", sig)
	}
	select {
	case sig := <-first:
		t.Fatalf("the first one heard %+v", sig)
	default:
	}
}

func TestCloseEndsSubscriptions(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{})
	w := drivertest.Mutex("x", time.Minute)
	signals, stop, err := s.Watch(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := s.Losses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if sig := <-signals; sig != (driver.Signal{}) {
		t.Fatalf("the waiter heard %+v", sig)
	}
	if lost, open := <-feed; open {
		t.Fatalf("the feed told of %+v", lost)
	}
	stop()
	if _, err := s.Acquire(t.Context(), w); !errors.Is(err, driver.ErrClosed) {
		t.Fatalf("and then: %v", err)
	}
}

// Nobody reads the feed: nothing waits for it.
func TestLossesNeverBlock(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{})
	if _, err := s.Losses(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("x", time.Minute))
		if err := s.Revoke(t.Context(), driver.Revocation{Name: "x", Token: m.Token, Now: true}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestJournalIsOffByDefault(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{})
	n := 0
	for _, err := range s.Events(t.Context(), "", 0) {
		if n++; !errors.Is(err, errors.ErrUnsupported) {
			t.Fatalf("got %v", err)
		}
	}
	if n != 1 {
		t.Fatalf("%d answers", n)
	}
}

func TestJournalIsBounded(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{Journal: true})
	for range 6000 {
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("x", time.Minute))
		drivertest.MustRelease(t, s, m)
	}
	n, last := 0, uint64(0)
	for e, err := range s.Events(t.Context(), "x", 0) {
		if err != nil {
			t.Fatal(err)
		}
		n, last = n+1, e.Seq
	}
	if n != 10_000 || last != 12_000 {
		t.Fatalf("%d events up to %d", n, last)
	}
}

func TestRecordWithoutRetentionIsRejected(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{})
	for _, d := range []time.Duration{0, -1} {
		if _, err := s.Put(t.Context(), driver.Record{Key: "x", Retention: d}); !errors.Is(err, driver.ErrRejected) {
			t.Fatalf("retention %v: %v", d, err)
		}
	}
}

// A claim that is only kept has nobody left to tell.
func TestRevokeOfAKeptClaimChangesNothing(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{Journal: true})
	m := drivertest.Mutex("x", time.Minute)
	m.Keep = time.Minute
	m, _ = drivertest.MustAcquire(t, s, m)
	drivertest.MustRelease(t, s, m)
	if err := s.Revoke(t.Context(), driver.Revocation{Name: "x", Token: m.Token}); err != nil {
		t.Fatal(err)
	}
	for h := range s.List(t.Context(), "") {
		if h.State != driver.Kept {
			t.Fatalf("it is listed as %+v", h)
		}
	}
	for e := range s.Events(t.Context(), "", 0) {
		if e.Kind == driver.EventRevoked {
			t.Fatalf("it is written as %+v", e)
		}
	}
}

func TestListTellsTheTTLAskedForLast(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{})
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("x", time.Minute))
	m.TTL = time.Hour
	if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
		t.Fatal(p.Err)
	}
	for h := range s.List(t.Context(), "") {
		if h.TTL != time.Hour {
			t.Fatalf("TTL %v", h.TTL)
		}
	}
}

func TestReservedNamesNoHolder(t *testing.T) {
	t.Parallel()
	s := memlock.New(memlock.Options{})
	drivertest.MustAcquire(t, s, drivertest.Reader("x", time.Minute))
	w := drivertest.Mutex("x", time.Minute)
	w.Patience = time.Minute
	var e *driver.HeldError
	if _, err := s.Acquire(t.Context(), w); !errors.As(err, &e) || e.Reserved || e.Holder == nil {
		t.Fatalf("a writer behind a reader: %+v", e)
	}
	if _, err := s.Acquire(t.Context(), drivertest.Reader("x", time.Minute)); !errors.As(err, &e) || !e.Reserved || e.Holder != nil {
		t.Fatalf("a reader behind a place: %+v", e)
	}
}
