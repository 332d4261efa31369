package pglock_test

import (
	"os"
	"testing"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
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

// TestSchedules is as many short ones as scripts/schedules.sh asks for. Those of
// the table have one of a few servers to themselves, which is killed too.
func TestSchedules(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		const some = 8
		free := make(chan *servers.PostgresServer, some)
		if os.Getenv("DIBS_TORTURE_SCHEDULES") != "" {
			for range some {
				free <- servers.Postgres(t)
			}
		}
		drivertest.Schedules(t, drivertest.Harness{Name: "postgres", New: func(t testing.TB) drivertest.Storage {
			p := <-free
			t.Cleanup(func() { free <- p })
			rawURL := passing(t, p)
			return drivertest.Storage{
				Open:    func(t testing.TB) driver.Store { return drivertest.OpenURL(t, rawURL) },
				Restart: func(t testing.TB) { again(t, p) },
				Slack:   slack,
			}
		}})
	})
	t.Run("pgadvisory", func(t *testing.T) {
		p := servers.SharedPostgres(t)
		drivertest.Schedules(t, drivertest.Harness{Name: "pgadvisory", New: func(t testing.TB) drivertest.Storage {
			rawURL := advisory(passing(t, p))
			return drivertest.Storage{
				Open: func(t testing.TB) driver.Store { return drivertest.OpenURL(t, rawURL) },
				Kill: func(s driver.Store) { s.Close() },
				// On a wire: a request that comes late has a session, or it has ended.
				Cut: func(t testing.TB) (driver.Store, drivertest.Link) {
					link := newWire(t, p.Addr())
					return drivertest.Wrap(drivertest.OpenURL(t, with(t, rawURL, link.p.Addr())), link.Around), link
				},
				Slack: slack,
			}
		}})
	})
}

// passing makes a store in a database that is dropped when the test ends: a thousand
// of them would fill the disk.
func passing(t testing.TB, p *servers.PostgresServer) string {
	t.Helper()
	name := database(t, p)
	t.Cleanup(func() { query(t, p, "postgres", "DROP DATABASE "+name+" WITH (FORCE)") })
	if err := pglock.Init(t.Context(), p.URL(name)); err != nil {
		t.Fatal(err)
	}
	return p.URL(name)
}

// again kills a server and starts it again: what was committed is there, since the
// machine lives.
func again(t testing.TB, p *servers.PostgresServer) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(); err != nil {
		t.Fatal(err)
	}
}

func TestManyLeases(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 30 s, and the race detector's time")
	}
	t.Parallel()
	drivertest.Many(t, fresh(t, "postgres"))
}
