package pglock_test

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
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
			drivertest.Run(t, drivertest.Harness{Name: scheme + " behind pgbouncer", AtOnce: atOnce, Unfit: u, New: func(t testing.TB) drivertest.Storage {
				rawURL, space := with(t, store(t), b.Addr(), "pooler", "session"), rand.Text()
				return drivertest.Storage{
					Open: func(t testing.TB) driver.Store {
						if scheme == "pgadvisory" { // its keys are those of a database, whatever the schema
							return openStrict(t, advisory(with(t, rawURL, "", "namespace", space)))
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

// A pooler may hand on a server's connection on which an answer to its former client
// is still to come. Who is answered like that goes for another connection.
func TestAnAnswerToAnother(t *testing.T) {
	t.Parallel()
	p := servers.SharedPostgres(t)
	rawURL := newStore(t, p)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		both.Wait()
	})
	ready := []byte("Z\x00\x00\x00\x05I") // ReadyForQuery
	var mixed atomic.Int64                // connections still to be mixed up
	both.Go(func() {                      // ends with l
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", p.Addr())
			if err != nil {
				t.Error(err)
				_ = client.Close()
				return
			}
			both.Go(func() { // ends with the client's connection
				_, _ = io.Copy(server, client)
				_ = server.Close()
			})
			both.Go(func() { // ends with the server's
				defer client.Close()
				again := mixed.Add(-1) >= 0
				for buf := make([]byte, 1<<16); ; {
					n, err := server.Read(buf)
					if err != nil {
						return
					}
					out := buf[:n]
					if again && bytes.HasSuffix(out, ready) {
						out, again = append(out, ready...), false
					}
					if _, err := client.Write(out); err != nil {
						return
					}
				}
			})
		}
	})
	mixed.Store(5)
	s := open(t, with(t, rawURL, l.Addr().String()))
	c, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	drivertest.MustRelease(t, s, c)
	if mixed.Load() >= 0 {
		t.Error("no answer was mixed up")
	}

	mixed.Store(1000)
	bad, err := driver.Open(t.Context(), with(t, rawURL, l.Addr().String()))
	if err == nil {
		_, err = bad.Acquire(t.Context(), drivertest.Mutex("name", time.Minute))
		if err := bad.Close(); err != nil {
			t.Error(err)
		}
	}
	if err == nil || !strings.Contains(err.Error(), "another shape") || driver.Certain(err) {
		t.Errorf("nothing but mixed answers: %v", err)
	}
}
