package redislock_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/internal/servers"
)

func TestZHand(t *testing.T) {
	if os.Getenv("RATIO") == "" {
		t.Skip()
	}
	for _, n := range []int{2, 16, 128} {
		r := servers.Redis(t)
		var clients []*dibs.Client
		for range n {
			c, err := dibs.New(open(t, r.Addr(), ""), nil)
			if err != nil {
				t.Fatal(err)
			}
			clients = append(clients, c)
		}
		do(t, r, "CONFIG", "RESETSTAT")
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		var grants atomic.Int64
		per := make([]float64, n)
		var wg sync.WaitGroup
		start := time.Now()
		for i, c := range clients {
			wg.Go(func() {
				m := c.Mutex("lock")
				for ctx.Err() == nil {
					l, err := m.Lock(ctx)
					if err != nil {
						return
					}
					grants.Add(1)
					per[i]++
					l.Release(context.Background())
				}
			})
		}
		wg.Wait()
		took := time.Since(start)
		st := do(t, r, "INFO", "commandstats").(string)
		m := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+)`).FindStringSubmatch(st)
		calls, _ := strconv.Atoi(m[1])
		var sum, sq float64
		for _, x := range per {
			sum += x
			sq += x * x
		}
		g := float64(grants.Load())
		fmt.Printf("waiters %d: %.0f grants/s %.2f commands a grant, jain %.3f, %.1fus a grant\n", n, g/took.Seconds(), float64(calls)/g, sum*sum/sq/float64(n), took.Seconds()*1e6/g)
		u := regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([\d.]+)`).FindStringSubmatch(st)
		fmt.Println("usec per evalsha", u[1])
		for _, c := range clients {
			c.Close(context.Background())
		}
	}
}
