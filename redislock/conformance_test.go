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

// TestConformanceOfThePlainLayout runs them on the layout that other programs
// share, each on a server of its own.
func TestConformanceOfThePlainLayout(t *testing.T) {
	drivertest.Run(t, drivertest.Harness{Name: "redis, plain", New: func(t testing.TB) drivertest.Storage {
		r := servers.Redis(t) // the keys are the names: there is no namespace
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return open(t, r.Addr(), "layout=plain") },
			Cut:   func(t testing.TB) (driver.Store, drivertest.Link) { return cut(t, r.Addr(), "layout=plain") },
			Slack: 300 * time.Millisecond,
		}
	}})
}
