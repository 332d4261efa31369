package sqlitelock_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/sqlitelock"
)

// TestConformance runs the laws in real time, with file events.
func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Name: "sqlite", New: storage(func() *sqlitelock.Options {
		return &sqlitelock.Options{Journal: true}
	}, 300*time.Millisecond)})
}

// TestConformanceInBubble runs them in time that is exact and free.
func TestConformanceInBubble(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Name: "sqlite", Bubble: true, New: storage(func() *sqlitelock.Options {
		return sqlitelock.WithBell(sqlitelock.WithClock(sqlitelock.Options{Journal: true}, time.Now, "bubble"))
	}, 0)})
}

func storage(opts func() *sqlitelock.Options, slack time.Duration) func(testing.TB) drivertest.Storage {
	return func(t testing.TB) drivertest.Storage {
		path, opts := filepath.Join(t.TempDir(), "locks.db"), opts()
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
