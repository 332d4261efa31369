package drivertest

import (
	"testing"
	"time"

	"github.com/dibslock/dibs"
)

var unknownLaws = []law{
	{number: 34, name: "RefusedEndsAtOnce", test: refusedEndsAtOnce},
	{number: 34, name: "UnknownIsRetried", test: unknownIsRetried},
	{number: 34, name: "UnknownKeepsTheDeadline", test: unknownKeepsDeadline},
}

func refusedEndsAtOnce(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	start := time.Now()
	MustRelease(t, r.other, r.claim(t)) // taken away behind the client's back
	end := r.awaitEnd(t, l)
	isLost(t, l, dibs.Taken)
	if took := end.Sub(start); s.Bubble && took > r.ttl/3 {
		t.Errorf("it took %v, longer than until the next renewal", took)
	}
}

func unknownIsRetried(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	r.link.On(CutBefore, OpRenew)
	r.answered(t, OpRenew, 3)
	r.link.Pick(nil)
	time.Sleep(r.ttl) // past the deadline of the grant
	if err := l.Check(); err != nil {
		t.Errorf("Check after renewals that failed and then one that did not: %v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

func unknownKeepsDeadline(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	r.link.On(CutAfter, OpRenew) // the store extends the claim, and nobody hears of it
	r.endsAt(t, l, r.trustEnds(r.first(t, OpAcquire).Sent))
	var sent []time.Time
	for _, c := range r.calls.Calls(OpRenew) {
		sent = append(sent, c.Sent)
	}
	if len(sent) < 4 {
		t.Fatalf("%d renewals were tried within a TTL, want 4 or more", len(sent))
	}
	if !s.Bubble {
		return
	}
	n := len(sent)
	early, late := sent[1].Sub(sent[0]), sent[n-1].Sub(sent[n-2])
	if late >= early {
		t.Errorf("tries %v apart at first and %v near the deadline: want them faster", early, late)
	}
	if gap := time.Since(sent[n-1]); gap > r.ttl/10 {
		t.Errorf("the last try was %v before the end", gap)
	}
}
