package pglock_test

import (
	"strings"
	"testing"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// advisory is the URL of the advisory locks of the database that rawURL names.
func advisory(rawURL string) string { return "pgadvisory" + strings.TrimPrefix(rawURL, "postgres") }

func TestConformanceOfAdvisoryLocks(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	p := servers.SharedPostgres(t)
	drivertest.Run(t, drivertest.Harness{Name: "pgadvisory", New: func(t testing.TB) drivertest.Storage {
		rawURL := advisory(newStore(t, p))
		return drivertest.Storage{
			Open: func(t testing.TB) driver.Store { return open(t, rawURL) },
			Kill: func(s driver.Store) { s.Close() }, // the end of a process closes its connections too
			Cut: func(t testing.TB) (driver.Store, drivertest.Link) {
				link := newWire(t, p.Addr())
				return drivertest.Wrap(open(t, with(t, rawURL, link.p.Addr())), link.Around), link
			},
			Slack: slack,
		}
	}})
}
