package redislock_test

import (
	"os"
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

// TestSchedules is as many short ones as scripts/schedules.sh asks for, each on a
// server of its own, which is killed too.
func TestSchedules(t *testing.T) {
	drivertest.Schedules(t, drivertest.Harness{Name: "redis", New: func(t testing.TB) drivertest.Storage {
		r := durable(t)
		return drivertest.Storage{
			Open:    func(t testing.TB) driver.Store { return drivertest.OpenURL(t, "redis://"+r.Addr()) },
			Restart: func(t testing.TB) { again(t, r) },
			Slack:   300 * time.Millisecond,
		}
	}})
}

// durable starts a server that keeps what it acknowledged, in memory if there is a
// directory there: a disk that others keep busy takes seconds to sync.
func durable(t testing.TB) *servers.RedisServer {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "redislock")
	if err != nil {
		dir = t.TempDir()
	}
	r, err := servers.StartRedis(dir, servers.Durable())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Stop(); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	return r
}

// again kills a server and starts it again.
func again(t testing.TB, r *servers.RedisServer) {
	t.Helper()
	if err := r.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := r.Restart(); err != nil {
		t.Fatal(err)
	}
}
