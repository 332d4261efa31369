package redislock_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// TestConformance runs the laws on a real server, each in a namespace of its own,
// and what needs a broken network through a proxy. With a journal every call goes
// the long way in the scripts, so that only what is about the journal has one.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	r := servers.SharedRedis(t)
	drivertest.Run(t, drivertest.Harness{Name: "redis", New: func(t testing.TB) drivertest.Storage {
		params := space()
		if strings.Contains(t.Name(), "Journal") {
			params += "&journal=on"
		}
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return open(t, r.Addr(), params) },
			Cut:   func(t testing.TB) (driver.Store, drivertest.Link) { return cut(t, r.Addr(), params) },
			Slack: 400 * time.Millisecond,
		}
	}})
}

// TestConformanceOfThePlainLayout runs them on the layout that other programs
// share. Its keys are the names, so each storage is a database of its own.
func TestConformanceOfThePlainLayout(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	r := servers.Redis(t, servers.RedisArgs("--databases", "10000"))
	var db atomic.Int64
	drivertest.Run(t, drivertest.Harness{Name: "redis, plain", New: func(testing.TB) drivertest.Storage {
		params := fmt.Sprintf("layout=plain&db=%d", db.Add(1))
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return open(t, r.Addr(), params) },
			Cut:   func(t testing.TB) (driver.Store, drivertest.Link) { return cut(t, r.Addr(), params) },
			Slack: 400 * time.Millisecond,
		}
	}})
}

// TestTortureStorm kills processes, whose claims end by their TTL.
func TestTortureStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	drivertest.Storm(t, "redis://"+servers.SharedRedis(t).Addr()+"/?"+space(), time.Second)
}
