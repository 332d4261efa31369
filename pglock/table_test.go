package pglock_test

import (
	"flag"
	"fmt"
	"net/url"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/pglock"
)

func TestMain(m *testing.M) {
	drivertest.StormMain()
	flag.Parse()
	// The laws mostly wait for time to pass, which many can do at once.
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := f.Value.Set("8"); err != nil {
			panic(err)
		}
	}
	servers.Main(m)
}

var databases atomic.Uint64

// database makes an empty database on a server and returns its name.
func database(t testing.TB, p *servers.PostgresServer) string {
	t.Helper()
	name := fmt.Sprintf("test%d", databases.Add(1))
	if _, err := p.Query("postgres", "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return name
}

// with returns rawURL with more parameters, and perhaps another host.
func with(t testing.TB, rawURL, host string, params ...string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for i := 0; i < len(params); i += 2 {
		q.Set(params[i], params[i+1])
	}
	u.RawQuery = q.Encode()
	if host != "" {
		u.Host = host
	}
	return u.String()
}

func open(t testing.TB, rawURL string) driver.Store {
	t.Helper()
	s, err := driver.Open(t.Context(), rawURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestConformance runs the laws on a table as most have it, without the journal:
// only then the usual calls are one statement.
func TestConformance(t *testing.T) {
	conformance(t, func(rawURL string) string { return rawURL }, func(s driver.Store) driver.Store {
		x := s.(*pglock.Table)
		return lean{x, x, x, x, x, x, x}
	})
}

// TestConformanceWithJournal has every step write what it did.
func TestConformanceWithJournal(t *testing.T) {
	conformance(t, func(rawURL string) string { return with(t, rawURL, "", "journal", "on") }, func(s driver.Store) driver.Store { return s })
}

// lean is a table without its journal, which is off.
type lean struct {
	driver.Store
	driver.Watcher
	driver.Batcher
	driver.LossFeed
	driver.Lister
	driver.Revoker
	driver.Records
}

func conformance(t *testing.T, opened func(rawURL string) string, as func(driver.Store) driver.Store) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	p := servers.SharedPostgres(t)
	store := newStores(t, p)
	drivertest.Run(t, drivertest.Harness{Name: "postgres", AtOnce: atOnce, New: func(t testing.TB) drivertest.Storage {
		rawURL := opened(store(t))
		return drivertest.Storage{
			Open: func(t testing.TB) driver.Store { return as(open(t, rawURL)) },
			Cut: func(t testing.TB) (driver.Store, drivertest.Link) {
				link := newWire(t, p.Addr())
				return drivertest.Wrap(as(open(t, with(t, rawURL, link.p.Addr()))), link.Around), link
			},
			Slack: slack,
		}
	}})
}

// atOnce is how many laws run side by side: what a law mostly does is to start
// clients, and each of them is a process of the server's.
const atOnce = 6

// slack is what a loaded machine needs on top.
const slack = 500 * time.Millisecond

// newStore makes an empty lease table and returns its URL.
func newStore(t testing.TB, p *servers.PostgresServer) string {
	t.Helper()
	rawURL := p.URL(database(t, p))
	if err := pglock.Init(t.Context(), rawURL); err != nil {
		t.Fatal(err)
	}
	return rawURL
}

// newStores returns what makes empty lease tables, each in a schema of its own: a
// database for each of many would cost the server most of its time, and in one for
// all every NOTIFY would wake whoever listens.
func newStores(t testing.TB, p *servers.PostgresServer) func(t testing.TB) string {
	t.Helper()
	var rawURLs []string
	for range 3 * atOnce {
		rawURLs = append(rawURLs, p.URL(database(t, p)))
	}
	var schemas atomic.Uint64
	return func(t testing.TB) string {
		t.Helper()
		n := schemas.Add(1)
		u := with(t, rawURLs[n%uint64(len(rawURLs))], "", "schema", fmt.Sprintf("dibs%d", n))
		if err := pglock.Init(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		return u
	}
}
