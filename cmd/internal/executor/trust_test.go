package executor_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/cmd/internal/executor"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/memlock"
)

const trustTTL = 6 * time.Second

// handedOver returns a lease that was handed over just now, whose renewals renew
// answers.
func handedOver(t *testing.T, renew func(ctx context.Context, do func(context.Context) drivertest.Answer) drivertest.Answer) *dibs.Lease {
	t.Helper()
	store := drivertest.Wrap(memlock.New(memlock.Options{}), func(ctx context.Context, c drivertest.Call, do func(context.Context) drivertest.Answer) drivertest.Answer {
		if c.Op == drivertest.OpRenew {
			return renew(ctx, do)
		}
		return do(ctx)
	})
	c, err := dibs.New(store, &dibs.Options{Settings: dibs.Settings{TTL: trustTTL}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	first, err := c.Mutex("k").TryLock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Second, func() { _ = first.Release(context.Background()) })
	lease, err := c.Mutex("k").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if left := lease.Remaining(); left > 2*time.Second {
		t.Fatalf("it is trusted for %v: that was no hand-over", left)
	}
	return lease
}

// Work does not start on a hand-over alone: if the first renewal is late, it
// starts late, and is not stopped before it has done anything.
func TestAHandOverIsRenewedBeforeTheWorkStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lease := handedOver(t, func(ctx context.Context, do func(context.Context) drivertest.Answer) drivertest.Answer {
			time.Sleep(time.Second)
			return do(ctx)
		})
		if err := executor.Trust(t.Context(), lease, 500*time.Millisecond, trustTTL, nil); err != nil || lease.Remaining() <= trustTTL/2 {
			t.Errorf("%v; the work starts with %v of trust", err, lease.Remaining())
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A store that gives no clear answer is asked until it does, the caller has enough,
// or the lease is lost.
func TestAHandOverIsRenewedUntilItCounts(t *testing.T) {
	t.Parallel()
	errSilent := errors.New("silent")
	silent := func(context.Context, func(context.Context) drivertest.Answer) drivertest.Answer {
		return drivertest.Answer{Err: errSilent}
	}
	for what, c := range map[string]struct {
		renew func(context.Context, func(context.Context) drivertest.Answer) drivertest.Answer
		wait  time.Duration // how long the caller does
		want  error
		told  bool // of tries without a clear answer
	}{
		"silent":    {silent, time.Hour, dibs.ErrLost, true},
		"cancelled": {silent, time.Second, errSilent, true},
		"hanging": {func(ctx context.Context, _ func(context.Context) drivertest.Answer) drivertest.Answer {
			<-ctx.Done()
			return drivertest.Answer{Err: ctx.Err()}
		}, time.Second, context.DeadlineExceeded, false},
		"refused": {func(context.Context, func(context.Context) drivertest.Answer) drivertest.Answer {
			return drivertest.Answer{Proofs: []driver.Proof{{Err: driver.ErrNotHeld}}}
		}, time.Hour, dibs.ErrLost, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				lease := handedOver(t, c.renew)
				ctx, cancel := context.WithTimeout(t.Context(), c.wait)
				defer cancel()
				tries := 0
				err := executor.Trust(ctx, lease, 500*time.Millisecond, trustTTL, func(err error) {
					if tries++; !errors.Is(err, errSilent) {
						t.Errorf("told of %v", err)
					}
				})
				if !errors.Is(err, c.want) {
					t.Errorf("%v; want %v", err, c.want)
				}
				if (tries > 1) != c.told {
					t.Errorf("told of %d tries that got no clear answer", tries)
				}
				if c.wait < time.Hour && lease.Check() != nil {
					t.Errorf("the caller left, and the lease ended: %v", lease.Check())
				}
			})
		})
	}
}
