package redislock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
)

// openURL opens a client that is closed when the test ends.
func openURL(t testing.TB, url string) driver.Store {
	t.Helper()
	s, err := driver.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// TestConformanceOfACluster runs the laws on a real cluster of three masters.
func TestConformanceOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	hosts := strings.Join(servers.Cluster(t, 3).Addrs(), ",")
	drivertest.Run(t, drivertest.Harness{Name: "redis-cluster", New: func(testing.TB) drivertest.Storage {
		params := space()
		return drivertest.Storage{
			Open:  func(t testing.TB) driver.Store { return openURL(t, "redis-cluster://"+hosts+"/?"+params) },
			Slack: 300 * time.Millisecond,
		}
	}})
}

// TestConformanceOfSentinels runs the laws on a master that sentinels watch.
func TestConformanceOfSentinels(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	s := servers.Sentinels(t, 2)
	hosts := strings.Join(s.Addrs(), ",")
	drivertest.Run(t, drivertest.Harness{Name: "redis", New: func(testing.TB) drivertest.Storage {
		params := space()
		return drivertest.Storage{
			Open: func(t testing.TB) driver.Store {
				return openURL(t, fmt.Sprintf("redis-sentinel://%s/%s?%s", hosts, s.Name, params))
			},
			Slack: 300 * time.Millisecond,
		}
	}})
}

// TestTortureStormOnTopologies kills processes whose locks are on several servers.
func TestTortureStormOnTopologies(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	for name, url := range map[string]func(t *testing.T) string{
		"cluster": func(t *testing.T) string {
			return "redis-cluster://" + strings.Join(servers.Cluster(t, 3).Addrs(), ",") + "/?" + space()
		},
		"sentinels": func(t *testing.T) string {
			s := servers.Sentinels(t, 2)
			return fmt.Sprintf("redis-sentinel://%s/%s?%s", strings.Join(s.Addrs(), ","), s.Name, space())
		},
		"quorum": func(t *testing.T) string {
			return newQuorum(t, addrsOf(servers.Redises(t, 5)), space()).url()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.Storm(t, url(t), time.Second)
		})
	}
}
