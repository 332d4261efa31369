package redislock_test

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

func fresh(t *testing.T) drivertest.Harness {
	r := servers.SharedRedis(t)
	return drivertest.Harness{Name: "redis", New: func(testing.TB) drivertest.Storage {
		params := space()
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return open(t, r.Addr(), params) },
			Slack: 300 * time.Millisecond,
		}
	}}
}

func TestManyLeases(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 30 s, and the race detector's time")
	}
	t.Parallel()
	drivertest.Many(t, fresh(t))
}

// Not parallel: it measures the process's heap.
func TestHeapPerLease(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the race detector's time")
	}
	drivertest.HeapPerLease(t, fresh(t))
}

// TestTorture is the long run: see scripts/torture.sh.
func TestTorture(t *testing.T) { drivertest.TortureByEnv(t, fresh(t)) }
