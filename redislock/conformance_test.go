package redislock_test

import (
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// TestConformance runs the laws on a real server, each in a namespace of its own,
// and what needs a broken network through a proxy.
func TestConformance(t *testing.T) {
	r := servers.SharedRedis(t)
	drivertest.Run(t, drivertest.Harness{Name: "redis", New: func(testing.TB) drivertest.Storage {
		params := space() + "&journal=on"
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return open(t, r.Addr(), params) },
			Cut:   func(t testing.TB) (driver.Store, drivertest.Link) { return cut(t, r.Addr(), params) },
			Slack: 300 * time.Millisecond,
		}
	}})
}
