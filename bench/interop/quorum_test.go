package interop_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// quorumOthers are the clients that lock on several nodes.
var quorumOthers = map[string]func(t testing.TB, rs []*servers.RedisServer) other{
	"redsync": func(t testing.TB, rs []*servers.RedisServer) other {
		var pools []redis.Pool
		for _, r := range rs {
			pools = append(pools, goredis.NewPool(client(t, r)))
		}
		return redsyncer{t, redsync.New(pools...), make(map[string]*redsync.Mutex)}
	},
	"npm's redlock": func(t testing.TB, rs []*servers.RedisServer) other {
		args := []string{"testdata/redlock.js"}
		for _, r := range rs {
			args = append(args, strconv.Itoa(r.Port()))
		}
		return startNode(t, "redlock", args...)
	},
}

// On the same nodes the others keep us out and we them, also with one node of
// three down.
func TestOthersOnAQuorumExcludeUsAndWeThem(t *testing.T) {
	t.Parallel()
	for what, join := range quorumOthers {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			rs := servers.Redises(t, 3)
			var addrs []string
			for _, r := range rs {
				addrs = append(addrs, r.Addr())
			}
			url := "redlock://" + strings.Join(addrs, ",") + "/?layout=plain"
			if err := redislock.RedlockInit(t.Context(), url); err != nil {
				t.Fatal(err)
			}
			s, err := driver.Open(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			o := join(t, rs)
			var last uint64
			turn := func(name string) {
				t.Helper()
				// Our release returns when most nodes have it; the last one may yet be on its
				// way, and with a node down the other needs that one too.
				soon(t, "the other locks a free name", func() bool { return o.acquire(name, time.Minute) })
				var held *driver.HeldError
				if _, err := s.Acquire(t.Context(), drivertest.Mutex(name, time.Minute)); !errors.As(err, &held) {
					t.Fatalf("held by the other: %v", err)
				}
				if held.RetryAfter <= 30*time.Second || held.RetryAfter > time.Minute {
					t.Errorf("refused with %+v", held)
				}
				if !o.extend(name, 5*time.Minute) || !o.release(name) {
					t.Fatal("the other has lost its lock")
				}
				m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex(name, time.Minute))
				if m.Token <= last {
					t.Errorf("token %d after %d", m.Token, last)
				}
				last = m.Token
				if o.acquire(name, time.Minute) {
					t.Fatal("the other has our lock")
				}
				if p := drivertest.RenewOne(t.Context(), s, m); p.Err != nil {
					t.Errorf("renew: %v", p.Err)
				}
				drivertest.MustRelease(t, s, m)
			}
			turn("name")
			turn("name")
			if err := rs[1].Kill(); err != nil {
				t.Fatal(err)
			}
			turn("name")
			// By expiry: the other's, and ours.
			if !o.acquire("name", time.Second) {
				t.Fatal("the other can't lock a free name")
			}
			soon(t, "the other's lock expires", func() bool {
				_, err := s.Acquire(t.Context(), drivertest.Mutex("name", 2*time.Second))
				return err == nil
			})
			soon(t, "our lock expires", func() bool { return o.acquire("name", time.Minute) })
		})
	}
}
