package drivertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
)

// noDeadlock has 50 goroutines lock five of twenty names each, in any order.
func noDeadlock(t *testing.T, s *Stage) {
	both(func(t *testing.T, s *Stage) {
		var (
			clients []*dibs.Client
			base    = fresh()
			inside  [20]atomic.Int32
			wg      sync.WaitGroup
		)
		for range 2 {
			clients = append(clients, newRig(t, s, dibs.Settings{TTL: s.TTL(30 * time.Second)}).client)
		}
		for g := range 50 {
			wg.Go(func() { // ends with its rounds
				c, rng := clients[g%2], rand.New(rand.NewPCG(1, uint64(g)))
				for range 2 {
					five := rng.Perm(len(inside))[:5]
					var ls []*dibs.Locker
					for _, i := range five {
						ls = append(ls, c.Mutex(fmt.Sprintf("%s/%02d", base, i)))
					}
					err := c.All(ls...).Do(bounded(t, 5*time.Minute), func(context.Context) error {
						for _, i := range five {
							if inside[i].Add(1) != 1 {
								t.Errorf("two hold name %d", i)
							}
						}
						time.Sleep(time.Millisecond)
						for _, i := range five {
							inside[i].Add(-1)
						}
						return nil
					})
					if err != nil {
						t.Errorf("Do: %v", err)
						return
					}
				}
			})
		}
		wg.Wait()
	})(t, s)
}
