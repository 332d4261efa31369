package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var releaseLaws = []law{
	{number: 38, name: "LateAskLeavesNoClaim", test: lateAskLeavesNoClaim},
	{number: 38, name: "LateAskOfALeaseLeavesNoClaim", test: lateAskOfLease},
	{number: 38, name: "LateAskLeavesNoPlace", test: lateAskLeavesNoPlace},
	{number: 38, name: "UnknownReleaseIsRepeated", test: unknownReleaseIsRepeated},
	{number: 39, name: "ReleaseWaitsForTheRenewal", test: releaseWaitsForRenewal},
	{number: 39, name: "Answers", test: releaseAnswers},
	{number: 39, name: "OwnLostAnswerIsAYes", test: ownLostAnswer},
	{number: 39, name: "WorkIsNotHidden", test: workIsNotHidden},
}

// pastHaunting sleeps until a TTL after sent, when law 38 ends, and a little
// longer, but not until a claim that landed half a TTL after sent has ended.
func (r *rig) pastHaunting(sent time.Time) {
	time.Sleep(time.Until(sent.Add(r.ttl + r.ttl/10)))
	r.Settle()
}

// landsAt makes what is late arrive half a TTL after sent.
func (r *rig) landsAt(sent time.Time) {
	time.Sleep(time.Until(sent.Add(r.ttl / 2)))
	r.link.Land()
}

func lateAskLeavesNoClaim(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.link.On(Late, OpAcquire)
	if _, err := r.client.Mutex(lockName).TryLock(t.Context()); !errors.Is(err, dibs.ErrUnknown) {
		t.Fatalf("TryLock: %v, want ErrUnknown", err)
	}
	r.link.Pick(nil)
	sent := r.first(t, OpAcquire).Sent
	r.answered(t, OpRelease, 1) // a clear answer: nothing there, yet
	r.landsAt(sent)
	r.pastHaunting(sent)
	r.isFree(t, lockName)
}

func lateAskOfLease(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	late := true
	r.link.Pick(func(c Call) (Fault, bool) { // the first ask alone
		if c.Op != OpAcquire || !late {
			return Pass, false
		}
		late = false
		return Late, true
	})
	l, err := r.client.Mutex(lockName).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
	sent := r.first(t, OpAcquire).Sent
	r.landsAt(sent)
	r.pastHaunting(sent)
	r.isFree(t, lockName)
}

func lateAskLeavesNoPlace(t *testing.T, s *Stage) {
	if !s.Facts.Ordered {
		t.Skip("there is no line")
	}
	r := newRig(t, s, dibs.Settings{})
	c, _ := MustAcquire(t, r.other, Mutex(lockName, r.TTL(10*r.ttl)))
	r.link.On(Late, OpAcquire)
	ctx, cancel := context.WithTimeout(t.Context(), r.ttl/10)
	defer cancel()
	if _, err := r.client.Mutex(lockName).Lock(ctx); err == nil {
		t.Fatal("Lock got a lease without an answer")
	}
	r.link.Pick(nil)
	sent := r.first(t, OpAcquire).Sent
	r.landsAt(sent)
	r.pastHaunting(sent)
	for _, h := range r.holders(t, lockName) {
		if h.Place != 0 {
			t.Errorf("a place is left: %+v", h)
		}
	}
	MustRelease(t, r.other, c)
	r.isFree(t, lockName)
}

func unknownReleaseIsRepeated(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	r.link.On(BlackHole, OpRelease)
	if err := l.Release(t.Context()); !errors.Is(err, dibs.ErrUnknown) {
		t.Errorf("Release: %v, want ErrUnknown", err)
	}
	r.link.Pick(nil)
	healed := time.Now()
	r.Eventually(t, r.ttl/2, "the claim is given back", func() bool {
		for _, c := range r.calls.Calls(OpRelease) {
			if !c.Sent.Before(healed) && c.Err == nil && !c.Answered.IsZero() {
				return true
			}
		}
		return false
	})
	r.isFree(t, lockName)
}

func releaseWaitsForRenewal(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	let := r.stuck(t, true, OpRenew)
	r.Eventually(t, r.ttl, "a renewal", func() bool { return len(r.calls.Calls(OpRenew)) > 0 })
	ended := make(chan error, 1)
	go func() { ended <- l.Release(t.Context()) }() // ends with the Release
	time.Sleep(r.ttl / 20)
	r.Settle()
	if n := len(r.calls.Calls(OpRelease)); n > 0 {
		t.Errorf("the store was asked to release while a renewal was under way")
	}
	let()
	if err := <-ended; err != nil {
		t.Errorf("Release: %v", err)
	}
	renewals := r.calls.Calls(OpRenew)
	if release := r.first(t, OpRelease); len(renewals) != 1 || release.Sent.Before(renewals[0].Answered) {
		t.Errorf("released at %v, with renewals %v", release.Sent, renewals)
	}
	if err := l.Check(); !errors.Is(err, dibs.ErrReleased) || errors.Is(err, dibs.ErrLost) {
		t.Errorf("Check: %v, want ErrReleased", err)
	}
	time.Sleep(r.ttl)
	if n := len(r.calls.Calls(OpRenew)); n != 1 {
		t.Errorf("%d renewals after the release", n-1)
	}
}

func releaseAnswers(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})

	l := r.tryLock(t)
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("released: %v", err)
	}
	if err := l.Release(t.Context()); !errors.Is(err, dibs.ErrReleased) {
		t.Errorf("released again: %v", err)
	}
	if n := len(r.calls.Calls(OpRelease)); n != 1 {
		t.Errorf("the store was asked %d times", n)
	}

	if !s.Bubble { // elsewhere the loss may be heard of first
		return
	}
	l = r.tryLock(t)
	r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		a := do(ctx)
		if c.Op == OpRelease {
			a.Err = &driver.NotHeldError{Name: lockName}
		}
		return a
	})
	if err := l.Release(t.Context()); !errors.Is(err, dibs.ErrNotHeld) || errors.Is(err, dibs.ErrLost) {
		t.Errorf("not mine: %v, want ErrNotHeld", err)
	}
	r.around.Store(nil)

	l = r.tryLock(t)
	r.link.Set(BlackHole)
	r.awaitEnd(t, l)
	r.link.Set(Pass)
	if err := l.Release(t.Context()); !errors.Is(err, dibs.ErrLost) {
		t.Errorf("ended: %v, want ErrLost", err)
	}
	r.isFree(t, lockName)

	l = r.tryLock(t)
	r.link.On(CutBefore, OpRelease)
	if err := l.Release(t.Context()); !errors.Is(err, dibs.ErrUnknown) || errors.Is(err, dibs.ErrNotHeld) {
		t.Errorf("unknown: %v, want ErrUnknown", err)
	}
}

func ownLostAnswer(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	cut := true
	r.link.Pick(func(c Call) (Fault, bool) { // the first release alone
		if c.Op != OpRelease || !cut {
			return Pass, false
		}
		cut = false
		return CutAfter, true
	})
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("Release: %v, though its own lost call freed it", err)
	}
	if n := len(r.calls.Calls(OpRelease)); n < 2 {
		t.Errorf("%d releases: the first answer was lost", n)
	}
}

func workIsNotHidden(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	work := errors.New("the work's own error")
	r.link.On(CutBefore, OpRelease)
	err := r.client.Mutex(lockName).Do(t.Context(), func(context.Context) error { return work })
	if !errors.Is(err, work) {
		t.Errorf("Do: %v, want the work's error", err)
	}
	err = r.client.Mutex("another lock").Do(t.Context(), func(context.Context) error { return nil })
	if err != nil {
		t.Errorf("Do: %v, though the work was done in time", err)
	}
	r.link.Pick(nil)

	err = r.client.Mutex("a third lock").Do(t.Context(), func(ctx context.Context) error {
		r.link.On(BlackHole, OpRenew)
		defer r.link.Pick(nil)
		<-ctx.Done()
		return work
	})
	if !errors.Is(err, work) || !errors.Is(err, dibs.ErrLost) {
		t.Errorf("Do: %v, want the work's error and the loss", err)
	}
}
