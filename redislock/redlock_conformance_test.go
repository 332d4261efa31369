package redislock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

func quorumHarness(addrs []string, params func() string) drivertest.Harness {
	return drivertest.Harness{Name: "redlock", New: func(t testing.TB) drivertest.Storage {
		q := newQuorum(t, addrs, params())
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return q.open(t) },
			Cut:   func(t testing.TB) (driver.Store, drivertest.Link) { return q.cut(t) },
			Slack: 300 * time.Millisecond,
		}
	}}
}

// TestConformanceOfAQuorum runs the laws on five real servers, each in a namespace
// of its own, and what needs a broken network through proxies.
func TestConformanceOfAQuorum(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	drivertest.Run(t, quorumHarness(addrsOf(servers.Redises(t, 5)), space))
}

// TestConformanceOfAPlainQuorum runs them on the layout that other programs share,
// on three.
func TestConformanceOfAPlainQuorum(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	var db atomic.Int64
	rs := servers.Redises(t, 3, servers.RedisArgs("--databases", "10000"))
	drivertest.Run(t, quorumHarness(addrsOf(rs), func() string { return fmt.Sprintf("layout=plain&db=%d", db.Add(1)) }))
}
