package redislock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// BenchmarkUncontended has the raw floor (SET NX PX and a compare-and-delete
// script), the store alone, and a whole mutex, each with a ctx that can end.
func BenchmarkUncontended(b *testing.B) {
	r := servers.Redis(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.Run("floor", func(b *testing.B) {
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{r.Addr()}, DisableCache: true, ForceSingleClient: true})
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		del := rueidis.NewLuaScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`)
		b.ReportAllocs()
		for b.Loop() {
			id := drivertest.NewID()
			if err := c.Do(ctx, c.B().Set().Key("lock").Value(id).Nx().PxMilliseconds(30_000).Build()).Error(); err != nil {
				b.Fatal(err)
			}
			if n, err := del.Exec(ctx, c, []string{"lock"}, []string{id}).AsInt64(); err != nil || n != 1 {
				b.Fatal(n, err)
			}
		}
	})
	params := space()
	b.Run("store", func(b *testing.B) {
		s := open(b, r.Addr(), params)
		b.ReportAllocs()
		for b.Loop() {
			m := drivertest.Mutex("lock", 30*time.Second)
			g, err := s.Acquire(ctx, m)
			if err != nil {
				b.Fatal(err)
			}
			m.Token = g.Token
			if err := s.Release(ctx, m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("mutex", func(b *testing.B) {
		client, err := dibs.New(open(b, r.Addr(), params), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close(context.Background())
		b.ReportAllocs()
		for b.Loop() {
			l, err := client.Mutex("lock").Lock(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if err := l.Release(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
}
