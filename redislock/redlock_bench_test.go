package redislock_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// BenchmarkQuorum takes and gives back a name that nobody else wants, on a quorum
// of five and, in turns with that, on one of the five: compare the two of one run.
func BenchmarkQuorum(b *testing.B) {
	rs := servers.Redises(b, 5)
	five := newQuorum(b, addrsOf(rs), "prefix=p").open(b)
	one := open(b, rs[0].Addr(), "")
	pair := func(b *testing.B, s driver.Store, name string) {
		m, _ := drivertest.MustAcquire(b, s, drivertest.Mutex(name, time.Minute))
		drivertest.MustRelease(b, s, m)
	}
	for range 3 {
		b.Run("one", func(b *testing.B) {
			for b.Loop() {
				pair(b, one, "name")
			}
		})
		b.Run("five", func(b *testing.B) {
			for b.Loop() {
				pair(b, five, "name")
			}
		})
	}
	var n atomic.Int64
	for what, name := range map[string]func() string{
		"fresh":  func() string { return fmt.Sprint("fresh", n.Add(1)) },
		"reused": func() string { return fmt.Sprint("reused", n.Add(1)%1000) },
	} {
		b.Run(what, func(b *testing.B) {
			const names = 10_000
			for b.Loop() {
				asked, before := five.(*redislock.Redlock).Rounds()
				var wg sync.WaitGroup
				for range 10 {
					wg.Go(func() { // ends after its share
						for range names / 10 {
							pair(b, five, name())
						}
					})
				}
				wg.Wait()
				askedNow, second := five.(*redislock.Redlock).Rounds()
				b.ReportMetric(100-100*float64(second-before)/float64(askedNow-asked), "%one-round")
			}
		})
	}
}
