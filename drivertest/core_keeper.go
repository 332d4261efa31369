package drivertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
)

var keeperLaws = []law{
	{number: 42, name: "AHungRenewalDelaysNoOther", test: hungRenewal},
	{number: 42, name: "AHungShardDelaysNoOther", test: hungShard},
	{number: 42, name: "DueTogetherGoTogether", test: dueTogether},
	{number: 42, name: "BatchesAreBounded", test: batchesAreBounded},
	{number: 42, name: "RenewalsAreTimedOut", test: renewalsAreTimedOut},
}

// hungRenewal takes a lease while the renewal of another with ten times its TTL
// hangs.
func hungRenewal(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	slow, err := r.client.With(dibs.Settings{TTL: r.TTL(10 * r.ttl)}).Mutex("slow").TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hung := make(chan struct{})
	var once sync.Once
	r.link.Pick(func(c Call) (Fault, bool) {
		if c.Op != OpRenew || !about(c, "slow") {
			return Pass, false
		}
		once.Do(func() { close(hung) })
		return BlackHole, true
	})
	<-hung
	fast := r.tryLock(t)
	time.Sleep(2 * r.ttl) // and the call hangs for longer
	if err := fast.Check(); err != nil {
		t.Errorf("a hung renewal of another lease: %v", err)
	}
	if err := fast.Release(t.Context()); err != nil {
		t.Errorf("Release beside a hung renewal of another lease: %v", err)
	}
	r.link.Pick(nil)
	time.Sleep(5 * r.ttl)
	if err := slow.Check(); err != nil {
		t.Errorf("the renewal that hung was not retried in time: %v", err)
	}
}

// hungShard renews two leases of which one is on a shard that hangs: the store
// answers by its ctx with what it knows (law 15).
func hungShard(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	if _, err := r.client.With(dibs.Settings{TTL: r.TTL(10 * r.ttl)}).Mutex("slow").TryLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	fast := r.tryLock(t)
	var shared atomic.Int64
	r.between(func(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
		if c.Op != OpRenew || !about(c, "slow") {
			return do(ctx)
		}
		if len(c.Claims) > 1 {
			shared.Add(1)
		}
		proofs := make([]driver.Proof, len(c.Claims))
		for i, claim := range c.Claims {
			if claim.Name != "slow" {
				proofs[i] = RenewOne(ctx, r.inner, claim)
			}
		}
		<-ctx.Done()
		for i, claim := range c.Claims {
			if claim.Name == "slow" {
				proofs[i].Err = ErrCut
			}
		}
		return Answer{Proofs: proofs, Err: ErrCut}
	})
	time.Sleep(8 * r.ttl)
	if err := fast.Check(); err != nil {
		t.Errorf("beside a lease on a hung shard (%d calls were for both): %v", shared.Load(), err)
	}
}

// about tells whether c is about name.
func about(c Call, name string) bool {
	return slices.ContainsFunc(c.Claims, func(claim driver.Claim) bool { return claim.Name == name })
}

// many locks n names, one after the other, within the given time.
func (r *rig) many(t testing.TB, n int, within time.Duration) []*dibs.Lease {
	t.Helper()
	leases := make([]*dibs.Lease, n)
	for i := range leases {
		time.Sleep(within / time.Duration(n))
		var err error
		if leases[i], err = r.client.Mutex(fmt.Sprint("many ", i)).TryLock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return leases
}

func dueTogether(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	const n = 50
	leases := r.many(t, n, r.ttl/15)
	time.Sleep(3 * r.ttl)
	for _, l := range leases {
		if err := l.Check(); err != nil {
			t.Error(err)
		}
	}
	calls := r.calls.Calls(OpRenew)
	claims := 0
	for _, c := range calls {
		claims += len(c.Claims)
	}
	if claims < 3*n {
		t.Errorf("%d renewals of %d claims in 3 TTLs", claims, n)
	}
	// A dozen rounds if a round is a call; a few more if they drift apart.
	if limit := 40; s.Bubble && len(calls) > limit {
		t.Errorf("%d calls for %d renewals of claims that are due together, want at most %d", len(calls), claims, limit)
	}
}

// small is a store that renews few claims at once.
type small struct{ driver.Store }

const smallBatch = 7

func (s small) Facts() driver.Facts {
	f := s.Store.Facts()
	f.MaxBatch = min(f.MaxBatch, smallBatch)
	return f
}

func batchesAreBounded(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{})
	client, err := dibs.New(Wrap(small{s.Open(t)}, r.calls.Around), &dibs.Options{Settings: dibs.Settings{TTL: r.ttl}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	r2 := &rig{Stage: s, client: client}
	leases := r2.many(t, 3*smallBatch+1, 0)
	time.Sleep(2 * r.ttl)
	for _, l := range leases {
		if err := l.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range r.calls.Calls(OpRenew) {
		if len(c.Claims) > smallBatch {
			t.Fatalf("a call with %d claims; the store takes %d", len(c.Claims), smallBatch)
		}
	}
}

func renewalsAreTimedOut(t *testing.T, s *Stage) {
	r := newRig(t, s, dibs.Settings{CallTimeout: time.Hour})
	r.tryLock(t)
	r.answered(t, OpRenew, 2)
	for _, c := range r.calls.Calls(OpRenew) {
		if limit := c.Deadline.Sub(c.Sent); c.Deadline.IsZero() || limit > r.ttl/3 {
			t.Errorf("a renewal may take until %v after it was sent, want at most %v", limit, r.ttl/3)
		}
	}
}
