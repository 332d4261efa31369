package redislock_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

func TestZRatio(t *testing.T) {
	if os.Getenv("RATIO") == "" {
		t.Skip()
	}
	r := servers.Redis(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{r.Addr()}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	del := rueidis.NewLuaScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) else return 0 end`)
	s := open(t, r.Addr(), space())
	client, err := dibs.New(open(t, r.Addr(), space()), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close(context.Background())
	mu := client.Mutex("lock")
	ops := []func(){
		func() {
			id := drivertest.NewID()
			if err := c.Do(ctx, c.B().Set().Key("lock").Value(id).Nx().PxMilliseconds(30_000).Build()).Error(); err != nil {
				t.Fatal(err)
			}
			if n, err := del.Exec(ctx, c, []string{"lock"}, []string{id}).AsInt64(); err != nil || n != 1 {
				t.Fatal(n, err)
			}
		},
		func() {
			m := drivertest.Mutex("lock", 30*time.Second)
			g, err := s.Acquire(ctx, m)
			if err != nil {
				t.Fatal(err)
			}
			m.Token = g.Token
			if err := s.Release(ctx, m); err != nil {
				t.Fatal(err)
			}
		},
		func() {
			l, err := mu.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(ctx); err != nil {
				t.Fatal(err)
			}
		},
	}
	times := make([][]float64, len(ops))
	for range 20000 {
		for i, op := range ops {
			start := time.Now()
			op()
			times[i] = append(times[i], float64(time.Since(start).Nanoseconds()))
		}
	}
	for i := range times {
		slices.Sort(times[i])
	}
	for _, q := range []int{10, 25, 50} {
		f := times[0][len(times[0])*q/100]
		fmt.Printf("p%d floor %.1fus store %.2fx mutex %.2fx\n", q, f/1000, times[1][len(times[1])*q/100]/f, times[2][len(times[2])*q/100]/f)
	}
}
