package pglock_test

import (
	"testing"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// fresh are empty stores, without a journal.
func fresh(t testing.TB, scheme string) drivertest.Harness {
	p := servers.SharedPostgres(t)
	return drivertest.Harness{Name: scheme, New: func(t testing.TB) drivertest.Storage {
		rawURL := newStore(t, p)
		if scheme == "pgadvisory" {
			rawURL = advisory(rawURL)
		}
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return open(t, rawURL) },
			Kill:  func(s driver.Store) { s.Close() },
			Slack: slack,
		}
	}}
}

// TestTorture is the long run: see scripts/torture.sh.
func TestTorture(t *testing.T) {
	for _, scheme := range []string{"postgres", "pgadvisory"} {
		t.Run(scheme, func(t *testing.T) { drivertest.TortureByEnv(t, fresh(t, scheme)) })
	}
}
