package pglock_test

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// TestConformanceBehindPgBouncer has the pooler in the mode that leaves a client
// nothing of a session. Without LISTEN, signals come from a poll.
func TestConformanceBehindPgBouncer(t *testing.T) {
	if testing.Short() {
		t.Skip("TestConformance has the same laws")
	}
	t.Parallel()
	p := servers.SharedPostgres(t)
	b := servers.PgBouncer(t, p, "transaction", 20)
	drivertest.Run(t, drivertest.Harness{Name: "postgres behind pgbouncer", New: func(t testing.TB) drivertest.Storage {
		rawURL := with(t, newStore(t, p), b.Addr(), "journal", "on")
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return open(t, rawURL) },
			Slack: slack + 250*time.Millisecond,
		}
	}})
}
