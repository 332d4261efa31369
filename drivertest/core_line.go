package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// coreLineLaws are what laws 27 to 30 ask of a waiter.
var coreLineLaws = []law{
	{number: 27, name: "WaiterThatWasEvictedComesBack", test: evictedComesBack},
	{number: 27, name: "WaiterWhoseHandOverLapsedComesBack", test: lapsedComesBack},
	{number: 27, name: "WaiterWhosePlaceMovedKeepsItsPace", test: movedKeepsPace},
	{number: 28, name: "WaiterAsksAgainOnceSubscribed", test: asksOnceSubscribed},
	{number: 28, name: "WaiterPollsWithoutSignals", test: pollsWithoutSignals},
	{number: 28, name: "WaiterAsksAtRetryAfter", test: asksAtRetryAfter},
	{number: 29, name: "WaiterTrustsFromTheRefusedAsk", test: trustsFromRefusedAsk},
	{number: 29, name: "WaiterDropsSignalsOfOtherPlaces", test: dropsOtherSignals},
	{number: 29, name: "WaiterRenewsAtOnce", test: renewsAtOnce},
	{number: 29, name: "WaiterAdoptsWhatItHeardTooLate", test: adoptsWhatItHeardTooLate},
	{number: 29, name: "WaiterHearsWhileItsAsksFail", test: hearsWhileAsksFail},
	{number: 30, name: "WaitersRefreshTogether", test: waitersRefreshTogether},
	{number: 30, name: "WaiterInACrowdAsksOnce", test: asksOnceInACrowd},
}

// locking is a Lock under way.
type locking struct {
	ended chan struct{}
	lease *dibs.Lease
	err   error
	at    time.Time // when it ended
}

// lock starts a Lock of the lock, and waits until it has been refused for the
// first time and has settled to wait.
func (r *rig) lock(t testing.TB) *locking {
	t.Helper()
	n := len(r.calls.Calls(OpAcquire))
	l := r.startLock(t)
	r.answered(t, OpAcquire, n+1)
	if r.Settle(); !r.Bubble {
		time.Sleep(r.ttl / 10)
	}
	return l
}

func (r *rig) startLock(t testing.TB) *locking {
	ctx, cancel := context.WithCancel(t.Context())
	l := &locking{ended: make(chan struct{})}
	go func() { // ends with the Lock; the test waits for it
		defer close(l.ended)
		l.lease, l.err = r.client.Mutex(lockName).Lock(ctx)
		l.at = time.Now()
	}()
	t.Cleanup(func() { cancel(); <-l.ended })
	return l
}

// got waits for the lease.
func (l *locking) got(t testing.TB, d time.Duration) *dibs.Lease {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.ended:
	case <-timer.C:
		t.Fatalf("Lock has not returned after %v", d)
	}
	if l.err != nil {
		t.Fatalf("Lock: %v", l.err)
	}
	return l.lease
}

// needsLine skips the test on a store without a line or without signals.
func (r *rig) needsLine(t testing.TB) {
	t.Helper()
	if !r.Facts.Ordered || r.Facts.HandOver == 0 {
		t.Skip("there is no line")
	}
	Power[driver.Watcher](t, r.inner)
}

// waiting is how long a test waits for what is due within a poll or a hand-over.
func (r *rig) waiting() time.Duration {
	return 2*time.Second + 2*r.Facts.HandOver + 2*r.ttl + r.Grace() + 5*time.Second
}

func evictedComesBack(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.needsLine(t)
	held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	l := r.lock(t)
	place := r.first(t, OpAcquire).Claims[0]
	MustRelease(t, r.other, place) // behind the waiter's back
	r.Eventually(t, r.waiting(), "a new place", func() bool {
		for _, h := range r.holders(t, lockName) {
			if h.State == driver.Waiting {
				return true
			}
		}
		return false
	})
	MustRelease(t, r.other, held)
	if err := l.got(t, r.waiting()).Check(); err != nil {
		t.Error(err)
	}
}

// movedKeepsPace gives a waiter another place behind its back, as an ask of its
// own does that lands late.
func movedKeepsPace(t *testing.T, s *Stage) {
	patience := s.TTL(time.Second)
	r := newRig(t, s, dibs.Settings{Patience: patience})
	r.needsLine(t)
	MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	const limit = 100
	var renewals atomic.Int64
	r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		if c.Op == OpRenew && renewals.Add(1) > limit {
			<-ctx.Done() // in a bubble no time would pass
		}
		return do(ctx)
	})
	r.lock(t)
	place := r.first(t, OpAcquire).Claims[0]
	MustRelease(t, r.other, place)
	if _, err := r.other.Acquire(t.Context(), place); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("a place again: %v, want ErrHeld", err)
	}
	time.Sleep(3 * patience)
	if n := renewals.Load(); n > limit/5 {
		t.Errorf("%d renewals in %v, with a patience of %v", n, 3*patience, patience)
	}
}

func lapsedComesBack(t *testing.T, s *Stage) {
	// A store that is silent for a TTL would be an error.
	r := newRig(t, s, dibs.Settings{TTL: s.TTL(3*s.Facts.HandOver + 2*time.Second)})
	r.needsLine(t)
	held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	l := r.lock(t)
	r.link.Set(BlackHole)
	time.Sleep(time.Millisecond)
	MustRelease(t, r.other, held)
	time.Sleep(r.Facts.HandOver + r.Grace() + 10*time.Millisecond)
	MustRelease(t, r.other, r.snatch(t))
	r.link.Set(Pass)
	if err := l.got(t, r.waiting()).Check(); err != nil {
		t.Error(err)
	}
}

// snatch takes the lock as soon as it is free.
func (r *rig) snatch(t testing.TB) driver.Claim {
	t.Helper()
	c := Mutex(lockName, r.ttl)
	c.Barging = true
	r.Eventually(t, r.waiting(), "the lock is free", func() bool {
		g, err := r.other.Acquire(t.Context(), c)
		c.Token = g.Token
		return err == nil
	})
	return c
}

func asksOnceSubscribed(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.needsLine(t)
	held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	var once sync.Once
	var freed time.Time
	r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		if c.Op == OpWatch { // after the ask, and before there is a subscription
			once.Do(func() {
				MustRelease(t, r.other, held)
				freed = time.Now()
			})
		}
		return do(ctx)
	})
	l := r.startLock(t)
	if err := l.got(t, r.waiting()).Check(); err != nil {
		t.Error(err)
	}
	if freed.IsZero() {
		t.Fatal("nobody subscribed")
	}
	if late := l.at.Sub(freed); s.Bubble && late > 100*time.Millisecond {
		t.Errorf("it took %v to find what happened between ask and subscription", late)
	}
}

func pollsWithoutSignals(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	r.link.On(CutBefore, OpWatch)
	l := r.lock(t)
	freed := time.Now()
	MustRelease(t, r.other, held)
	if err := l.got(t, r.waiting()).Check(); err != nil {
		t.Error(err)
	}
	if late := l.at.Sub(freed); s.Bubble && late > time.Second {
		t.Errorf("it took %v to find it free, want a poll of at most a second", late)
	}
}

func asksAtRetryAfter(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	ttl := r.TTL(3 * time.Second)
	asked := time.Now()
	MustAcquire(t, r.other, Mutex(lockName, ttl)) // and is never heard of again
	l := r.startLock(t)
	if err := l.got(t, ttl+r.waiting()).Check(); err != nil {
		t.Error(err)
	}
	if late := l.at.Sub(asked.Add(ttl)); s.Bubble && late > r.Grace()+50*time.Millisecond {
		t.Errorf("it took %v to find that the claim had ended", late)
	}
}

func trustsFromRefusedAsk(t *testing.T, s *Stage) {
	if !s.Bubble {
		t.Skip("needs a bubble") // the signal must be heard before the next ask
	}
	r := newRig(t, s, dibs.Settings{Patience: time.Minute})
	r.needsLine(t)
	held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	l := r.lock(t)
	time.Sleep(3500 * time.Millisecond) // some polls later, half a second or so after the last
	asks := r.calls.Calls(OpAcquire)
	refused := asks[len(asks)-1]
	if !errors.Is(refused.Err, driver.ErrHeld) {
		t.Fatalf("the last ask: %v, want ErrHeld", refused.Err)
	}
	r.link.On(BlackHole, OpAcquire, OpRenew) // what comes by signal is all that it gets
	MustRelease(t, r.other, held)
	lease := l.got(t, time.Second)
	ttl := r.Facts.HandOver
	want := refused.Sent.Add(ttl - max(ttl/100, 5*time.Millisecond))
	r.endsAt(t, lease, want)
}

func dropsOtherSignals(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.needsLine(t)
	held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	forged := make(chan driver.Signal, 1)
	r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		a := do(ctx)
		if v, ok := a.Value.(watched); ok && a.Err == nil {
			v.signals = forged
			a.Value = v
		}
		return a
	})
	l := r.lock(t)
	for _, h := range r.holders(t, lockName) {
		if h.State == driver.Waiting {
			forged <- driver.Signal{Place: h.Place + 1, Grant: &driver.Grant{Token: held.Token + 5, Fence: held.Token + 5, TTL: r.Facts.HandOver}}
		}
	}
	time.Sleep(r.ttl / 2)
	select {
	case <-l.ended:
		t.Errorf("Lock returned (%v) by the signal for another place", l.err)
	default:
	}
	if len(forged) != 0 {
		t.Error("nobody read the signal")
	}
	MustRelease(t, r.other, held)
	l.got(t, r.waiting())
}

func renewsAtOnce(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{Patience: s.TTL(20 * time.Second)})
	r.needsLine(t)
	held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	l := r.lock(t)
	MustRelease(t, r.other, held)
	lease := l.got(t, r.waiting())
	start := time.Now()
	short := dibs.Settings{TTL: max(s.TTL(time.Second), r.Facts.MinTTL)}
	if _, err := r.client.With(short).Mutex("another").TryLock(t.Context()); err != nil { // due later: it must not put that off
		t.Fatal(err)
	}
	r.Eventually(t, r.Facts.HandOver/2, "a proof of what was handed over", func() bool { return lease.Remaining() > r.ttl/2 })
	if took := time.Since(start); s.Bubble && took > r.Facts.HandOver/16 {
		t.Errorf("it took %v to renew what was handed over", took)
	}
	time.Sleep(r.Facts.HandOver + r.ttl)
	if err := lease.Check(); err != nil {
		t.Error(err)
	}
}

// hearsWhileAsksFail has a store that hands over while it takes no asks, as one does
// that is out of memory: the waiter hears of it by a signal, or else by a renewal of
// its place.
func hearsWhileAsksFail(t *testing.T, s *Stage) {
	for _, deaf := range []bool{false, true} {
		r := newRig(t, s, dibs.Settings{Patience: s.TTL(time.Second)})
		r.needsLine(t)
		held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
		if deaf {
			r.link.On(CutBefore, OpWatch)
		}
		l := r.lock(t)
		r.link.Pick(func(c Call) (Fault, bool) {
			return CutBefore, c.Op == OpAcquire || deaf && c.Op == OpWatch
		})
		r.answered(t, OpAcquire, len(r.calls.Calls(OpAcquire))+2)
		MustRelease(t, r.other, held)
		lease := l.got(t, r.waiting())
		r.Eventually(t, r.waiting(), "a proof of what was handed over", func() bool { return lease.Remaining() > r.ttl/2 })
		r.link.Pick(nil)
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
	}
}

// adoptsWhatItHeardTooLate has the signal of a hand-over come when hardly any of its
// trust is left: the waiter asks again, under the same ID, so nothing may be on its
// way that gives that up.
func adoptsWhatItHeardTooLate(t *testing.T, s *Stage) {
	if !s.Bubble {
		t.Skip("needs a bubble") // the signal is to come within an eighth of the hand-over
	}
	r := newRig(t, s, dibs.Settings{Patience: s.TTL(700 * time.Millisecond)}) // it ends before the next poll
	r.needsLine(t)
	held, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	signals, late := make(chan (<-chan driver.Signal), 1), make(chan driver.Signal, 1)
	r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		a := do(ctx)
		if v, ok := a.Value.(watched); ok && a.Err == nil {
			signals <- v.signals
			v.signals = late
			a.Value = v
		}
		return a
	})
	l := r.lock(t)
	asks := r.calls.Calls(OpAcquire)
	r.link.On(BlackHole, OpRenew) // or the keeper hears of it first
	MustRelease(t, r.other, held)
	handed := <-<-signals
	if handed.Grant == nil {
		t.Fatalf("the signal has no grant: %+v", handed)
	}
	ttl := handed.Grant.TTL
	time.Sleep(time.Until(asks[len(asks)-1].Sent.Add(ttl - max(ttl/100, 5*time.Millisecond) - ttl/16)))
	late <- handed
	lease := l.got(t, time.Second)
	r.link.Pick(nil)
	if lease.Token() != handed.Grant.Token {
		t.Errorf("token %d, want that of the hand-over, %d", lease.Token(), handed.Grant.Token)
	}
	time.Sleep(2 * r.ttl)
	if err := lease.Check(); err != nil {
		t.Error(err)
	}
	r.isHeld(t, lockName)
	if n := len(r.calls.Calls(OpRelease)); n != 0 {
		t.Errorf("%d releases of what is held", n)
	}
}
