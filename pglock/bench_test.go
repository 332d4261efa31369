package pglock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/internal/servers"
)

// Each benchmark stands beside the raw statements that it is to be compared with.

func benchStore(b *testing.B, scheme string, params ...string) (driver.Store, string) {
	rawURL := newStore(b, servers.SharedPostgres(b))
	u := with(b, rawURL, "", params...)
	if scheme == "pgadvisory" {
		u = advisory(u)
	}
	return open(b, u), rawURL
}

func pair(b testing.TB, s driver.Store, name string, id *atomic.Int64) {
	c := driver.Claim{Name: name, ID: fmt.Sprint("id", id.Add(1)), Units: 1, Capacity: 1, TTL: 30 * time.Second}
	g, err := s.Acquire(context.Background(), c)
	if err != nil {
		b.Error(err)
		return
	}
	c.Token = g.Token
	if err := s.Release(context.Background(), c); err != nil {
		b.Error(err)
	}
}

func BenchmarkAlone(b *testing.B) {
	var id atomic.Int64
	raw := func(b *testing.B, statements string) {
		c := psql(b, newStore(b, servers.SharedPostgres(b)))
		for b.Loop() {
			for s := range strings.SplitSeq(statements, ";") {
				if _, err := c.Exec(context.Background(), s, int64(42)); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	const try, unlock = "SELECT pg_try_advisory_lock($1)", "SELECT pg_advisory_unlock($1)"
	const fence = "INSERT INTO dibs.fences VALUES ($1, false, 1) ON CONFLICT (k, two) DO UPDATE SET v = fences.v + 2"
	b.Run("advisory/raw", func(b *testing.B) { raw(b, try+";"+unlock) })
	b.Run("advisory/fence=off", func(b *testing.B) {
		s, _ := benchStore(b, "pgadvisory", "fence", "off")
		for b.Loop() {
			pair(b, s, "x", &id)
		}
	})
	b.Run("advisory/raw+update", func(b *testing.B) { raw(b, try+";"+fence+";"+unlock) })
	b.Run("advisory/fence=on", func(b *testing.B) {
		s, _ := benchStore(b, "pgadvisory")
		for b.Loop() {
			pair(b, s, "x", &id)
		}
	})
	b.Run("table/raw", func(b *testing.B) {
		raw(b, "INSERT INTO dibs.fences VALUES ($1, false, 1) ON CONFLICT (k, two) DO UPDATE SET v = fences.v + 2;UPDATE dibs.fences SET v = v + 1 WHERE k = $1")
	})
	b.Run("table", func(b *testing.B) {
		s, _ := benchStore(b, "postgres")
		for b.Loop() {
			pair(b, s, "x", &id)
		}
	})
	// With fsync, as a server comes.
	durable := servers.Postgres(b, servers.PostgresDurable())
	rawURL := newStore(b, durable)
	b.Run("durable/raw", func(b *testing.B) {
		c := psql(b, rawURL)
		for b.Loop() {
			exec(b, c, "INSERT INTO dibs.fences VALUES ($1, false, 1) ON CONFLICT (k, two) DO UPDATE SET v = fences.v + 2", 42)
			exec(b, c, "UPDATE dibs.fences SET v = v + 1 WHERE k = $1", 42)
		}
	})
	b.Run("durable/table", func(b *testing.B) {
		s := open(b, rawURL)
		for b.Loop() {
			pair(b, s, "x", &id)
		}
	})
}

// BenchmarkHandOver is a release until the waiter has its grant, beside a NOTIFY
// until it is heard.
func BenchmarkHandOver(b *testing.B) {
	b.Run("raw", func(b *testing.B) {
		rawURL := newStore(b, servers.SharedPostgres(b))
		from, to := psql(b, rawURL), psql(b, rawURL)
		exec(b, to, "LISTEN x")
		for b.Loop() {
			exec(b, from, "NOTIFY x")
			if _, err := to.WaitForNotification(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, scheme := range []string{"postgres", "pgadvisory"} {
		b.Run(scheme, func(b *testing.B) {
			one, rawURL := benchStore(b, scheme)
			if scheme == "pgadvisory" {
				rawURL = advisory(rawURL)
			}
			handOvers(b, []driver.Store{one, open(b, rawURL)})
		})
	}
}

// handOvers passes a lock to and fro.
func handOvers(b *testing.B, stores []driver.Store) {
	ctx := context.Background()
	next := func(i int) driver.Claim {
		return driver.Claim{Name: "x", ID: fmt.Sprint("turn", i), Units: 1, Capacity: 1, TTL: 30 * time.Second, Patience: 20 * time.Second}
	}
	held := next(0)
	g, err := stores[0].Acquire(ctx, held)
	if err != nil {
		b.Fatal(err)
	}
	held.Token = g.Token
	for i := 1; b.Loop(); i++ {
		b.StopTimer()
		c, s := next(i), stores[i%2]
		refused(b, s, c)
		signals, stop, err := s.(driver.Watcher).Watch(ctx, c)
		if err != nil {
			b.Fatal(err)
		}
		refused(b, s, c)
		b.StartTimer()
		if err := stores[(i+1)%2].Release(ctx, held); err != nil {
			b.Fatal(err)
		}
		for {
			sig := <-signals
			if sig.Grant != nil {
				c.Token = sig.Grant.Token
				break
			}
			if g, err := s.Acquire(ctx, c); err == nil {
				c.Token = g.Token
				break
			}
		}
		stop()
		held = c
	}
}

func BenchmarkSixtyFour(b *testing.B) {
	var id atomic.Int64
	all := func(b *testing.B, do func(i int)) {
		var wg sync.WaitGroup
		var n atomic.Int64
		for i := range 64 {
			wg.Go(func() { // ends after its share of b.N
				for n.Add(1) <= int64(b.N) {
					do(i)
				}
			})
		}
		wg.Wait()
	}
	b.Run("advisory/raw", func(b *testing.B) {
		rawURL := newStore(b, servers.SharedPostgres(b))
		conns := make([]*pgx.Conn, 64)
		for i := range conns {
			conns[i] = psql(b, rawURL)
		}
		b.ResetTimer()
		all(b, func(i int) {
			_, _ = conns[i].Exec(context.Background(), "SELECT pg_try_advisory_lock($1)", int64(i))
			_, _ = conns[i].Exec(context.Background(), "SELECT pg_advisory_unlock($1)", int64(i))
		})
	})
	for name, params := range map[string][]string{"fence=off": {"fence", "off"}, "fence=on": nil} {
		b.Run("advisory/"+name, func(b *testing.B) {
			s, _ := benchStore(b, "pgadvisory", params...)
			b.ResetTimer()
			all(b, func(i int) { pair(b, s, fmt.Sprint("x", i), &id) })
		})
	}
	b.Run("table", func(b *testing.B) {
		s, _ := benchStore(b, "postgres")
		b.ResetTimer()
		all(b, func(i int) { pair(b, s, fmt.Sprint("x", i), &id) })
	})
}
