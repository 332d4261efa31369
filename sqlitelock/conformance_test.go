package sqlitelock_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/sqlitelock"
)

// TestConformance runs the laws in real time, with file events.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes of real time; the bubble has the same laws")
	}
	drivertest.Run(t, drivertest.Harness{Name: "sqlite", New: storage(func() *sqlitelock.Options {
		return &sqlitelock.Options{Journal: true}
	}, 400*time.Millisecond)})
}

// TestConformanceInBubble runs them in time that is exact and free.
func TestConformanceInBubble(t *testing.T) {
	drivertest.Run(t, bubble)
}

// bubble is the harness of stores whose clock is a bubble's.
var bubble = drivertest.Harness{Name: "sqlite", Bubble: true, New: storage(func() *sqlitelock.Options {
	return sqlitelock.WithBell(sqlitelock.WithClock(sqlitelock.Options{Journal: true}, time.Now, "bubble"))
}, 0)}

func storage(opts func() *sqlitelock.Options, slack time.Duration) func(testing.TB) drivertest.Storage {
	return func(t testing.TB) drivertest.Storage {
		path, opts := filepath.Join(fastDir(t), "locks.db"), opts()
		return drivertest.Storage{
			Open: func(t testing.TB) driver.Store { return openStore(t, path, opts) },
			Kill: func(s driver.Store) {
				if s, ok := s.(*sqlitelock.Store); ok {
					sqlitelock.Crash(s)
				}
			},
			Slack: slack,
		}
	}
}

// fastDir is a directory in memory, if there is one: the laws in real time have
// short TTLs, and a disk that others keep busy takes seconds for a commit.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sqlitelock")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestTorture is the long run: see scripts/torture.sh.
func TestTorture(t *testing.T) { drivertest.TortureByEnv(t, plain) }

// TestSchedules is as many short ones as scripts/schedules.sh asks for.
func TestSchedules(t *testing.T) { drivertest.Schedules(t, bubble) }

// TestTortureStorm kills processes, whose claims the kernel then frees at once.
func TestTortureStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	drivertest.Storm(t, "sqlite://"+filepath.Join(fastDir(t), "locks.db"), 5*time.Second)
}
