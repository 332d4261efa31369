package redislock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

func userClient(t testing.TB, addrs ...string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// TestConformanceOverAUsersClient runs the laws through one client that a user has
// anyway.
func TestConformanceOverAUsersClient(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	client := userClient(t, servers.SharedRedis(t).Addr())
	drivertest.Run(t, drivertest.Harness{Name: "redis", New: func(testing.TB) drivertest.Storage {
		o := &redislock.Options{Prefix: space()[len("prefix="):], Journal: true}
		return drivertest.Storage{
			Open: func(t testing.TB) driver.Store {
				s, err := redislock.New(client, o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			},
			Slack: 300 * time.Millisecond,
		}
	}})
}

// A client of a cluster makes a store of the cluster; closing the store leaves the
// client to its user; and both see the same locks as a client by URL.
func TestUsersClient(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, 3)
	client := userClient(t, c.Addrs()...)
	s, err := redislock.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := openURL(t, "redis-cluster://"+c.Nodes[0].Addr())
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex(name, time.Minute))
		if _, err := other.Acquire(t.Context(), drivertest.Mutex(name, time.Minute)); !errors.Is(err, driver.ErrHeld) {
			t.Errorf("%s: %v", name, err)
		}
		if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
			t.Error(p.Err)
		}
		drivertest.MustRelease(t, s, m)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Acquire(t.Context(), drivertest.Mutex("a", time.Minute)); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := client.Do(t.Context(), client.B().Ping().Build()).Error(); err != nil {
		t.Errorf("the user's client: %v", err)
	}
	_, err = redislock.New(client, &redislock.Options{Journal: true})
	isRejected(t, err)
	_, err = redislock.New(client, &redislock.Options{Prefix: "{}"})
	isRejected(t, err)
}
