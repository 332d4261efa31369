package cli

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/memlock"
)

// A command does not start on a hand-over alone: if the first renewal is late, it
// starts late, and is not stopped before it has done anything.
func TestAHandOverIsRenewedBeforeTheCommandStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const ttl = 6 * time.Second
		store := drivertest.Wrap(memlock.New(memlock.Options{}), func(ctx context.Context, c drivertest.Call, do func(context.Context) drivertest.Answer) drivertest.Answer {
			if c.Op == drivertest.OpRenew {
				time.Sleep(time.Second)
			}
			return do(ctx)
		})
		c, err := dibs.New(store, &dibs.Options{Settings: dibs.Settings{TTL: ttl}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
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
		r := &runner{log: slog.New(slog.NewTextHandler(io.Discard, nil))}
		r.ttl.Duration, r.grace.Duration = ttl, 500*time.Millisecond
		if err := r.trust(lease); err != nil || lease.Remaining() <= ttl/2 {
			t.Errorf("%v; the command starts with %v of trust", err, lease.Remaining())
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
