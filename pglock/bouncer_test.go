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
	store := newStores(t, p)
	drivertest.Run(t, drivertest.Harness{Name: "postgres behind pgbouncer", AtOnce: atOnce, New: func(t testing.TB) drivertest.Storage {
		rawURL := with(t, store(t), b.Addr(), "journal", "on")
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return open(t, rawURL) },
			Slack: slack + 150*time.Millisecond,
		}
	}})
}

// TestConformanceBehindPgBouncerInSessionMode has both kinds of locks behind a
// pooler that gives a connection a server's for as long as it lasts.
func TestConformanceBehindPgBouncerInSessionMode(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	p := servers.SharedPostgres(t)
	for scheme, u := range map[string]map[string]string{"postgres": nil, "pgadvisory": unfit} {
		b := servers.PgBouncer(t, p, "session", 400, "server_idle_timeout=2", "max_client_conn=2000")
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			store := newStores(t, p)
			drivertest.Run(t, drivertest.Harness{Name: scheme + " behind pgbouncer", Unfit: u, New: func(t testing.TB) drivertest.Storage {
				rawURL := with(t, store(t), b.Addr(), "pooler", "session")
				return drivertest.Storage{
					Open: func(t testing.TB) driver.Store {
						if scheme == "pgadvisory" {
							return openStrict(t, advisory(rawURL))
						}
						return open(t, with(t, rawURL, "", "journal", "on"))
					},
					Kill:  func(s driver.Store) { s.Close() },
					Slack: slack + 150*time.Millisecond,
				}
			}})
		})
	}
}
