package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibslock/dibs"
)

var contextLaws = []law{
	{number: 37, name: "ReleaseWithACancelledContext", test: releaseCancelled},
	{number: 37, name: "HoldingOutlivesTheCaller", test: holdingOutlivesCaller},
	{number: 37, name: "CancelledWaitLeavesNoPlace", test: cancelledWaitLeavesNoPlace},
	{number: 37, name: "CancelledAskLeavesNoClaim", test: cancelledAskLeavesNoClaim},
	{number: 37, name: "CancelledAskKeepsTheRefusal", test: cancelledAskKeepsRefusal},
}

func cancelled(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	cancel()
	return ctx
}

func releaseCancelled(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	if err := l.Release(cancelled(t.Context())); err != nil {
		t.Errorf("Release: %v", err)
	}
	r.isFree(t, lockName)

	err := r.client.Mutex(lockName).Do(t.Context(), func(context.Context) error { return nil })
	if err != nil {
		t.Errorf("Do: %v", err)
	}
	r.isFree(t, lockName)
}

func holdingOutlivesCaller(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	ctx, cancel := context.WithCancel(t.Context())
	l, err := r.client.Mutex(lockName).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	time.Sleep(2 * r.ttl)
	if err := l.Check(); err != nil {
		t.Errorf("the end of the waiting ctx ended the holding: %v", err)
	}
	r.isHeld(t, lockName)
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func cancelledWaitLeavesNoPlace(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	c, _ := MustAcquire(t, r.other, Mutex(lockName, r.ttl))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { // ends with the Lock
		_, err := r.client.Mutex(lockName).Lock(ctx)
		ended <- err
	}()
	r.answered(t, OpAcquire, 1)
	r.Settle()
	start := time.Now()
	cancel()
	err := <-ended
	if took := time.Since(start); s.Bubble && took > 0 {
		t.Errorf("Lock took %v to notice the end of its ctx", took)
	}
	var wait *dibs.WaitError
	if !errors.As(err, &wait) || !errors.Is(err, context.Canceled) || !errors.Is(err, dibs.ErrHeld) {
		t.Errorf("Lock: %v, want a *WaitError that is the ctx's cause and ErrHeld", err)
	}
	r.answered(t, OpRelease, 1)
	for _, h := range r.holders(t, lockName) {
		if h.Place != 0 {
			t.Errorf("a place is left: %+v", h)
		}
	}
	MustRelease(t, r.other, c)
	r.isFree(t, lockName)
}

func cancelledAskLeavesNoClaim(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.link.On(DropReplies, OpAcquire)
	ctx, cancel := context.WithCancel(t.Context())
	var ended time.Time
	go func() { // ends with the test's own progress
		for len(r.calls.Calls(OpAcquire)) == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(10 * time.Millisecond)
		ended = time.Now()
		cancel()
	}()
	l, err := r.client.Mutex(lockName).TryLock(ctx)
	if late := time.Since(ended); s.Bubble && late > time.Millisecond {
		t.Errorf("TryLock returned %v after its ctx had ended", late)
	}
	if err == nil {
		t.Fatalf("TryLock got a lease (%v) without an answer", l.Check())
	} else if errors.Is(err, dibs.ErrHeld) || !errors.Is(err, dibs.ErrUnknown) {
		t.Errorf("TryLock: %v, want ErrUnknown", err)
	}
	r.link.Pick(nil)
	if took := r.answered(t, OpRelease, 1); took.Err != nil {
		t.Errorf("the take-back: %v", took.Err)
	}
	r.isFree(t, lockName)
}

// cancelledAskKeepsRefusal ends a wait while the store is being asked again: the
// store's last word stands.
func cancelledAskKeepsRefusal(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	c, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(20*r.ttl)))
	asks := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.link.Pick(func(call Call) (Fault, bool) { // every ask but the first hangs
		if call.Op != OpAcquire {
			return Pass, false
		}
		if asks++; asks == 1 {
			return Pass, true
		}
		return BlackHole, true
	})
	after(t, r.ttl/10, func() {
		r.Eventually(t, r.ttl, "another ask", func() bool { return len(r.calls.Calls(OpAcquire)) > 1 })
		cancel()
	})
	_, err := r.client.Mutex(lockName).Lock(ctx)
	var wait *dibs.WaitError
	if !errors.As(err, &wait) || !errors.Is(err, context.Canceled) || !errors.Is(err, dibs.ErrHeld) {
		t.Errorf("Lock: %v, want a *WaitError that is the ctx's cause and ErrHeld", err)
	}
	r.link.Pick(nil)
	MustRelease(t, r.other, c)
}
