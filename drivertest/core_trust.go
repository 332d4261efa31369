package drivertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/boottime"
)

var trustLaws = []law{
	{number: 31, name: "GrantIsTrustedFromTheCall", test: grantTrustedFromCall},
	{number: 31, name: "ProofIsTrustedFromTheCall", test: proofTrustedFromCall},
	{number: 31, name: "TrustEndsBeforeTheClaim", test: trustEndsBeforeClaim},
	{number: 32, name: "EndsWhileACallHangs", test: endsWhileCallHangs},
	{number: 33, name: "SuspendIsNoticed", test: suspendIsNoticed, alone: true},
	{number: 35, name: "LostIsFinal", test: lostIsFinal},
	{number: 36, name: "LateGrantIsGivenBack", test: lateGrantIsGivenBack},
	{number: 36, name: "LateGrantIsAskedForAgain", test: lateGrantIsAskedForAgain},
	{number: 36, name: "LateGrantLeavesNoSubscription", test: lateGrantLeavesNoSubscription},
	{number: 40, name: "CheckIsExact", test: checkIsExact, alone: true},
}

func grantTrustedFromCall(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.link.Delay(0, r.ttl/4) // the store has granted long before the answer comes
	l := r.tryLock(t)
	r.link.Set(BlackHole)
	r.endsAt(t, l, r.trustEnds(r.first(t, OpAcquire).Sent))
}

func proofTrustedFromCall(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	r.link.Delay(0, r.ttl/5)
	renewal := r.answered(t, OpRenew, 1)
	r.link.Set(BlackHole)
	if err := renewal.Err; err != nil {
		t.Fatalf("renewal: %v", err)
	}
	r.endsAt(t, l, r.trustEnds(renewal.Sent))
}

func trustEndsBeforeClaim(t *testing.T, s *Stage) {
	if !s.Bubble {
		t.Skip("needs a bubble") // elsewhere the scheduler decides which is seen first
	}
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	r.link.Set(BlackHole)
	r.awaitEnd(t, l)
	r.isHeld(t, lockName)
}

// stuck makes calls of op hang until the first call of let, or the end of the
// test, whatever becomes of their ctx: before they are applied, or after.
func (r *rig) stuck(t testing.TB, after bool, op Op) (let func()) {
	gate := make(chan struct{})
	let = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(let)
	r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		if c.Op != op {
			return do(ctx)
		}
		if !after {
			<-gate
		}
		a := do(context.WithoutCancel(ctx))
		<-gate
		return a
	})
	return let
}

func endsWhileCallHangs(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	let := r.stuck(t, false, OpRenew)
	r.endsAt(t, l, r.trustEnds(r.first(t, OpAcquire).Sent))
	if len(r.calls.Calls(OpRenew)) == 0 {
		t.Error("no renewal was asked for, so none hung")
	}
	let()
}

// suspend swaps the boot-time clock for one that jump moves ahead of all others,
// as a suspended machine's is. The caller's test must be alone.
func suspend(t testing.TB) (jump func(time.Duration)) {
	var ahead atomic.Int64
	start := time.Now()
	restore := boottime.Swap(func() time.Duration { return time.Since(start) + time.Duration(ahead.Load()) })
	t.Cleanup(restore)
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

func suspendIsNoticed(t *testing.T, s *Stage) {
	jump := suspend(t)
	r := newRig(t, s, dibs.Settings{TTL: s.TTL(time.Minute)})
	l := r.tryLock(t)
	ctx := l.Context()
	if err := l.Check(); err != nil {
		t.Fatalf("Check: %v", err)
	}
	r.Settle() // the renewals sleep
	jump(10 * time.Minute)
	// Timers slept with the machine: nothing but a look finds it out.
	start := time.Now()
	if !done(ctx, time.Second+r.Grace()+time.Second) {
		t.Fatal("the context did not end within a second or so of the resume")
	}
	if took := time.Since(start); s.Bubble && took > time.Second {
		t.Errorf("the context ended %v after the resume, want a second or less", took)
	}
	isLost(t, l, dibs.Expired)
}

func checkIsExact(t *testing.T, s *Stage) {
	jump := suspend(t)
	r := newRig(t, s, dibs.Settings{TTL: s.TTL(time.Minute)})
	for range 20 {
		l := r.tryLock(t)
		r.Settle() // the renewals sleep: they do not hear of a jump
		if s.Bubble {
			jump(s.TTL(time.Minute) * 98 / 100)
			if err := l.Check(); err != nil {
				t.Errorf("Check before the end of trust: %v", err)
			}
			jump(s.TTL(time.Minute) * 1 / 100)
		} else {
			jump(s.TTL(time.Minute))
		}
		// Nothing has run since: the first answer must be right all the same.
		if err := l.Check(); err == nil {
			t.Errorf("Check after the end of trust: nil (its context: %v)", context.Cause(l.Context()))
		}
		isLost(t, l, dibs.Expired)
		if err := r.inner.Release(t.Context(), r.claim(t)); err != nil {
			t.Fatal(err) // time passed for the client alone
		}
	}
}

func lostIsFinal(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	l := r.tryLock(t)
	let := r.stuck(t, true, OpRenew) // applied: the store will say yes, but late
	r.awaitEnd(t, l)
	isLost(t, l, dibs.Expired)
	cause := l.Check()
	let()
	proof := r.answered(t, OpRenew, 1)
	if len(proof.Proofs) != 1 || proof.Proofs[0].Err != nil {
		t.Fatalf("the late answer is no yes: %+v", proof.Answer)
	}
	r.Settle()
	if err := l.Check(); err != cause {
		t.Errorf("Check after the late yes: %v, want as before: %v", err, cause)
	}
	if l.Remaining() != 0 {
		t.Errorf("%v of trust remain", l.Remaining())
	}
	n := len(r.calls.Calls(OpRenew))
	time.Sleep(r.ttl / 2)
	if more := len(r.calls.Calls(OpRenew)); more != n {
		t.Errorf("%d renewals of a lost lease", more-n)
	}
}

// slow makes the first acquire take effect half a TTL after it was sent, and
// answer after a whole one.
func (r *rig) slow() {
	var once atomic.Bool
	r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		if c.Op != OpAcquire || once.Swap(true) {
			return do(ctx)
		}
		time.Sleep(r.ttl / 2)
		a := do(context.WithoutCancel(ctx))
		time.Sleep(r.ttl / 2)
		return a
	})
}

func lateGrantIsGivenBack(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.slow()
	l, err := r.client.Mutex(lockName).TryLock(t.Context())
	if err == nil {
		t.Fatalf("got a lease with %v of trust left", l.Remaining())
	}
	if driver.Certain(err) {
		t.Errorf("TryLock: %v, which is a certain answer", err)
	}
	r.answered(t, OpRelease, 1)
	r.isFree(t, lockName) // and not only half a TTL later
}

func lateGrantIsAskedForAgain(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.slow()
	l, err := r.client.Mutex(lockName).Lock(t.Context())
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	if l.Remaining() == 0 {
		t.Errorf("a lease without trust: %v", l.Check())
	}
	time.Sleep(r.ttl)
	if err := l.Check(); err != nil {
		t.Errorf("Check a TTL later: %v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}

// lateGrantLeavesNoSubscription waits behind its own late grant, which is being
// given back, and so subscribes in the attempt that comes after it.
func lateGrantLeavesNoSubscription(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	r.needsLine(t)
	r.slow()
	slow := *r.around.Load()
	var begun, ended atomic.Int64
	r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		if c.Op == OpRelease {
			time.Sleep(r.ttl / 20)
		}
		a := slow(ctx, c, do)
		if v, ok := a.Value.(watched); ok && a.Err == nil {
			begun.Add(1)
			stop, once := v.stop, new(sync.Once)
			v.stop = func() {
				once.Do(func() { ended.Add(1) })
				stop()
			}
			a.Value = v
		}
		return a
	})
	l, err := r.client.Mutex(lockName).Lock(t.Context())
	if err != nil {
		t.Fatalf("Lock: %v", err)
	}
	if begun.Load() == 0 {
		t.Error("nobody subscribed")
	}
	if n := begun.Load() - ended.Load(); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("Release: %v", err)
	}
}
