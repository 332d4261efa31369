package redislock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// slotOf is the slot of a name's state.
func slotOf(name string) int { return redislock.Slot(redislock.Keys(name, false)[0]) }

// namesIn are n names whose slot is that of the first, which is given.
func namesIn(first string, n int) []string {
	names := []string{first}
	for i := 0; len(names) < n; i++ {
		if name := fmt.Sprint("other", i); slotOf(name) == slotOf(first) {
			names = append(names, name)
		}
	}
	return names
}

// A slot moves from one node of a cluster to another, step by step, while its names
// are held, renewed and asked for. What is held stays held: before, between and
// after its keys go over. What is new is unknown while the slot has keys on both
// sides, and never granted twice.
func TestSlotMoves(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, 3)
	s := openURL(t, "redis-cluster://"+strings.Join(c.Addrs(), ","))
	names := namesIn("name", 4)
	slot := slotOf(names[0])
	const masters = 3
	at := slices.IndexFunc(c.Nodes[:masters], func(r *servers.RedisServer) bool {
		v, _ := r.Do("CLUSTER", "COUNTKEYSINSLOT", slot)
		_, err := r.Do("GET", redislock.Keys(names[0], false)[0])
		return v != nil && err == nil
	})
	if at < 0 {
		t.Fatal("no node has the slot")
	}
	from, to := c.Nodes[at], c.Nodes[(at+1)%masters]
	id := func(r *servers.RedisServer) any { return do(t, r, "CLUSTER", "MYID") }

	held, g := drivertest.MustAcquire(t, s, drivertest.Mutex(names[0], time.Minute))
	stillHeld := func(when string) {
		t.Helper()
		if p := drivertest.RenewOne(t.Context(), s, held); p.Err != nil {
			t.Errorf("%s: renewed as %v", when, p.Err)
		}
		if _, err := s.Acquire(t.Context(), drivertest.Mutex(names[0], time.Minute)); !errors.Is(err, driver.ErrHeld) {
			t.Errorf("%s: asked for by another: %v", when, err)
		}
	}
	unclear := func(when string, name string) {
		t.Helper()
		if g, err := s.Acquire(t.Context(), drivertest.Mutex(name, time.Minute)); err == nil || driver.Certain(err) || !strings.Contains(err.Error(), "TRYAGAIN") {
			t.Errorf("%s: a new name: %+v, %v; want an unknown error by TRYAGAIN", when, g, err)
		}
	}
	stillHeld("at first")
	do(t, to, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	do(t, from, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	stillHeld("on its way, with all keys where they were")
	unclear("on its way", names[1])

	keys := do(t, from, "CLUSTER", "GETKEYSINSLOT", slot, 100).([]any)
	if len(keys) < 2 {
		t.Fatalf("the slot has the keys %v; want a name's and the mark", keys)
	}
	do(t, from, append([]any{"MIGRATE", "127.0.0.1", to.Port(), "", 0, 5000, "KEYS"}, keys...)...)
	stillHeld("on its way, with all keys on the other side: by ASK")
	unclear("on its way, with the mark on the other side", names[2])

	for _, r := range []*servers.RedisServer{to, from, c.Nodes[(at+2)%masters]} {
		do(t, r, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	}
	stillHeld("moved: by MOVED")
	next, g2 := drivertest.MustAcquire(t, s, drivertest.Mutex(names[3], time.Minute))
	if g2.Token <= g.Token {
		t.Errorf("token %d after %d of the same slot", g2.Token, g.Token)
	}
	drivertest.MustRelease(t, s, next)
	drivertest.MustRelease(t, s, held)
	if n := do(t, to, "EXISTS", redislock.Keys(names[0], false)[0]); n != int64(0) {
		t.Error("released, and its key is still there")
	}
}

// A slot that no node serves is unknown, and no claim in it ends for that.
func TestSlotIsNotServed(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, 3)
	s := openURL(t, "redis-cluster://"+strings.Join(c.Addrs(), ","))
	held, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
	slot, node := slotOf("name"), c.Nodes[nodeOf(c.Nodes[:3], "name")]
	do(t, node, "CLUSTER", "DELSLOTS", slot)
	_, acquire := s.Acquire(t.Context(), drivertest.Mutex("name", time.Minute))
	for call, err := range map[string]error{"acquire": acquire, "renew": drivertest.RenewOne(t.Context(), s, held).Err, "release": s.Release(t.Context(), held)} {
		if err == nil || driver.Certain(err) || !strings.Contains(err.Error(), "CLUSTERDOWN") {
			t.Errorf("%s: %v, want an unknown CLUSTERDOWN", call, err)
		}
	}
	do(t, node, "CLUSTER", "ADDSLOTS", slot)
	soon(t, "it is proved again", func() bool { return drivertest.RenewOne(t.Context(), s, held).Err == nil })
	drivertest.MustRelease(t, s, held)
}

// What a release tells the next one goes to the node that has the slot, and to no
// other.
func TestSignalsStayInTheirShard(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, 3)
	s := openURL(t, "redis-cluster://"+strings.Join(c.Addrs(), ","))
	held, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Hour))
	next := drivertest.Mutex("name", time.Hour)
	next.Patience = time.Minute
	if _, err := s.Acquire(t.Context(), next); !errors.Is(err, driver.ErrHeld) {
		t.Fatalf("held by another: %v", err)
	}
	signals, stop, err := s.(driver.Watcher).Watch(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	drivertest.MustRelease(t, s, held)
	select {
	case <-signals:
	case <-time.After(patience):
		t.Fatal("who is next is not told")
	}
	at := nodeOf(c.Nodes[:3], "name")
	for i, r := range c.Nodes[:3] {
		stats := do(t, r, "INFO", "commandstats").(string)
		if strings.Contains(stats, "cmdstat_publish:") || strings.Contains(stats, "cmdstat_spublish:") != (i == at) {
			t.Errorf("node %d, and node %d has the slot:\n%s", i, at, stats)
		}
	}
}

// reads are commands that would be a look at data.
var reads = []string{"evalsha", "eval", "evalsha_ro", "eval_ro", "get", "mget", "exists", "pttl", "pexpiretime", "hget", "hmget", "hgetall", "lrange", "lindex", "scan"}

// A replica is never asked about a lock, neither of a cluster nor behind sentinels:
// what it says may be old.
func TestReplicasAreNotRead(t *testing.T) {
	t.Parallel()
	busy := func(t *testing.T, url string, replicas []*servers.RedisServer) {
		t.Helper()
		s := openURL(t, url)
		asUser(t, s)
		held, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("held", time.Minute))
		if _, err := s.Acquire(t.Context(), drivertest.Mutex("held", time.Minute)); !errors.Is(err, driver.ErrHeld) {
			t.Errorf("held by another: %v", err)
		}
		listed := 0
		for _, err := range s.(driver.Lister).List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			listed++
		}
		if listed != 1 {
			t.Errorf("%d holders are listed", listed)
		}
		drivertest.MustRelease(t, s, held)
		for _, r := range replicas {
			stats := do(t, r, "INFO", "commandstats").(string)
			if !strings.Contains(do(t, r, "INFO", "replication").(string), "role:slave") || !strings.Contains(stats, "cmdstat_") {
				t.Fatalf("%s is no replica, or counts no commands", r.Addr())
			}
			for _, read := range reads {
				if strings.Contains(stats, "cmdstat_"+read+":") {
					t.Errorf("the replica %s was sent %s:\n%s", r.Addr(), read, stats)
				}
			}
		}
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := servers.Cluster(t, 3)
		busy(t, "redis-cluster://"+strings.Join(c.Addrs(), ","), c.Nodes[3:])
	})
	t.Run("sentinels", func(t *testing.T) {
		t.Parallel()
		s := servers.Sentinels(t, 2)
		busy(t, fmt.Sprintf("redis-sentinel://%s/%s", strings.Join(s.Addrs(), ","), s.Name), s.Servers[1:])
	})
}
