package drivertest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

// coreLaws are the laws of package dibs: L31 to L45, and what L27 to L30 ask of
// a waiter.
var coreLaws = sorted(trustLaws, unknownLaws, contextLaws, releaseLaws, coreLineLaws, waitLaws, keeperLaws, closeLaws, powerLaws)

// A rig is a client of package dibs whose calls are recorded and can be made to
// fail.
type rig struct {
	*Stage
	client *dibs.Client
	calls  *Recorder
	link   *LocalLink
	inner  driver.Store           // behind all that
	other  driver.Store           // another client of the store, without faults
	ttl    time.Duration          // of every claim
	around atomic.Pointer[Around] // between recorder and link; nil: nothing
	left   bool                   // the test expects Close to fail
}

// lockName is what most laws lock.
const lockName = "the lock"

// newRig makes a rig with set, in which the TTL is filled in.
func newRig(t testing.TB, s *Stage, set dibs.Settings) *rig {
	t.Helper()
	r := &rig{Stage: s, calls: new(Recorder), link: NewLink(), inner: s.Open(t), other: s.Open(t)}
	r.ttl = s.TTL(max(2*time.Second, 7*s.Grace())) // a call has a third of it
	if s.Bubble {
		r.ttl = s.TTL(6 * time.Second)
	} else { // what a first call takes longer for is not what a law is about
		for _, store := range []driver.Store{r.inner, r.other} {
			first, _ := MustAcquire(t, store, Mutex(fresh(), s.long()))
			MustRelease(t, store, first)
		}
	}
	if set.TTL == 0 {
		set.TTL = r.ttl
	}
	middle := func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		if around := r.around.Load(); around != nil {
			return (*around)(ctx, c, do)
		}
		return do(ctx)
	}
	store := Wrap(Wrap(Wrap(r.inner, r.link.Around), middle), r.calls.Around)
	client, err := dibs.New(store, &dibs.Options{Settings: set})
	if err != nil {
		t.Fatal(err)
	}
	r.client = client
	t.Cleanup(func() {
		r.link.Pick(nil)
		r.link.Delay(0, 0)
		r.link.Set(Pass)
		r.around.Store(nil)
		ctx, cancel := context.WithTimeout(context.Background(), 2*max(r.ttl, set.TTL)+r.Grace())
		defer cancel()
		if err := client.Close(ctx); err != nil && !r.left {
			t.Errorf("closing the client: %v", err)
		}
	})
	return r
}

// between puts around between the core and the link.
func (r *rig) between(around Around) { r.around.Store(&around) }

// tryLock takes the lock.
func (r *rig) tryLock(t testing.TB) *dibs.Lease {
	t.Helper()
	l, err := r.client.Mutex(lockName).TryLock(t.Context())
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	return l
}

// after calls f once, d from now, before the test ends.
func after(t testing.TB, d time.Duration, f func()) {
	ended := make(chan struct{})
	go func() { // ends after f; the test waits for it
		defer close(ended)
		time.Sleep(d)
		f()
	}()
	t.Cleanup(func() { <-ended })
}

// first is the first call of op.
func (r *rig) first(t testing.TB, op Op) Recorded {
	t.Helper()
	calls := r.calls.Calls(op)
	if len(calls) == 0 {
		t.Fatalf("no call of %s", op)
	}
	return calls[0]
}

// claim is the claim that the core was granted last.
func (r *rig) claim(t testing.TB) driver.Claim {
	t.Helper()
	var c driver.Claim
	for _, call := range r.calls.Calls(OpAcquire) {
		if call.Err == nil && len(call.Grants) == 1 {
			c = call.Claims[0]
			c.Token = call.Grants[0].Token
		}
	}
	if c.Token == 0 {
		t.Fatal("no acquire was granted")
	}
	return c
}

// trustEnds is when trust in what was asked at asked must end.
func (r *rig) trustEnds(asked time.Time) time.Time {
	return asked.Add(r.ttl - max(r.ttl/100, 5*time.Millisecond))
}

// awaitEnd waits for the end of the lease's context and returns when that was.
func (r *rig) awaitEnd(t testing.TB, l *dibs.Lease) time.Time {
	t.Helper()
	if !done(l.Context(), 10*r.ttl+r.Grace()) {
		t.Fatalf("the lease's context does not end")
	}
	return time.Now()
}

// endsAt demands that the lease's context ends at want: exactly so in a bubble,
// and otherwise not before, and within Grace.
func (r *rig) endsAt(t testing.TB, l *dibs.Lease, want time.Time) {
	t.Helper()
	end := r.awaitEnd(t, l)
	late := end.Sub(want)
	switch {
	case late < -time.Millisecond:
		t.Errorf("the context ended %v early", -late)
	case r.Bubble && late > time.Millisecond, late > r.Grace()+5*time.Second:
		t.Errorf("the context ended %v late", late)
	}
	isLost(t, l, dibs.Expired)
}

// isLost demands that l is lost for reason, by its context and by Check.
func isLost(t testing.TB, l *dibs.Lease, reason dibs.Reason) {
	t.Helper()
	for what, err := range map[string]error{"Check": l.Check(), "the context's cause": context.Cause(l.Context())} {
		var lost *dibs.LostError
		switch {
		case !errors.As(err, &lost) || !errors.Is(err, dibs.ErrLost):
			t.Errorf("%s: %v, want a *LostError", what, err)
		case lost.Reason != reason:
			t.Errorf("%s: %v, want it lost as %q", what, err, reason)
		}
	}
}

// isFree demands that another client is granted name at once, and gives it back.
func (r *rig) isFree(t testing.TB, name string) {
	t.Helper()
	c := Mutex(name, r.ttl)
	g, err := r.other.Acquire(t.Context(), c)
	if err != nil {
		t.Errorf("%q is not free: %v", name, err)
		return
	}
	c.Token = g.Token
	MustRelease(t, r.other, c)
}

// isHeld demands that another client is refused name.
func (r *rig) isHeld(t testing.TB, name string) {
	t.Helper()
	c := Mutex(name, r.ttl)
	if g, err := r.other.Acquire(t.Context(), c); err == nil {
		t.Errorf("%q is free", name)
		c.Token = g.Token
		MustRelease(t, r.other, c)
	} else if !errors.Is(err, driver.ErrHeld) {
		t.Errorf("%q: %v, want ErrHeld", name, err)
	}
}

// holders lists everything on name, if the store can.
func (r *rig) holders(t testing.TB, name string) []driver.Holder {
	t.Helper()
	lister, ok := r.other.(driver.Lister)
	if !ok {
		return nil
	}
	var all []driver.Holder
	for h, err := range lister.List(t.Context(), name) {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		all = append(all, h)
	}
	return all
}

// answered waits for the nth answer to a call of op, counted from 1.
func (r *rig) answered(t testing.TB, op Op, n int) Recorded {
	t.Helper()
	var got []Recorded
	r.Eventually(t, 2*r.ttl, "an answer to "+string(op), func() bool {
		got = got[:0]
		for _, c := range r.calls.Calls(op) {
			if !c.Answered.IsZero() {
				got = append(got, c)
			}
		}
		return len(got) >= n
	})
	return got[n-1]
}

// done waits at most d for the end of ctx and tells whether it came.
func done(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-t.C:
		return false
	}
}
