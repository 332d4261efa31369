package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// fronts are servers that all the others, and all clients, know by the address of
// a proxy.
type fronts struct {
	servers []*servers.RedisServer
	all     []*proxy.Proxy
	ports   []string
}

// before puts a proxy before each server. The setting tells it what to be called.
func before(t testing.TB, rs []*servers.RedisServer, setting string) *fronts {
	t.Helper()
	f := &fronts{servers: rs}
	for _, r := range rs {
		p := proxy.New(t, r.Addr())
		port := p.Addr()[strings.LastIndexByte(p.Addr(), ':')+1:]
		do(t, r, "CONFIG", "SET", setting, port)
		f.all, f.ports = append(f.all, p), append(f.ports, port)
	}
	return f
}

// beforeSentinels is before, for servers that sentinels watch.
func beforeSentinels(t testing.TB, s *servers.SentinelSet) *fronts {
	t.Helper()
	f := before(t, s.Servers, "replica-announce-port")
	each := func(args ...any) {
		t.Helper()
		for _, one := range s.Sentinels {
			if _, err := (&servers.RedisServer{Server: one}).Do(append([]any{"SENTINEL"}, args...)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	each("REMOVE", s.Name)
	for _, r := range s.Servers[1:] {
		do(t, r, "REPLICAOF", "127.0.0.1", f.ports[0])
	}
	soon(t, "the replicas follow", func() bool {
		info := do(t, s.Servers[0], "INFO", "replication").(string)
		return strings.Count(info, "state=online") == len(f.ports)-1
	})
	each("MONITOR", s.Name, "127.0.0.1", f.ports[0], 2)
	each("SET", s.Name, "down-after-milliseconds", 500, "failover-timeout", 3000)
	soon(t, "the sentinels know all servers and each other", func() bool {
		for _, one := range s.Sentinels {
			v, err := (&servers.RedisServer{Server: one}).Do("SENTINEL", "MASTER", s.Name)
			if err != nil {
				t.Fatal(err)
			}
			if text := fmt.Sprint(v); !strings.Contains(text, "num-slaves 2 ") || !strings.Contains(text, "num-other-sentinels 2 ") {
				return false
			}
		}
		return true
	})
	return f
}

// beforeCluster is before, for the nodes of a cluster. What they tell each other
// goes past the proxies, so that they take no node for dead that is cut off.
func beforeCluster(t testing.TB, c *servers.RedisCluster) *fronts {
	t.Helper()
	f := before(t, c.Nodes, "cluster-announce-port")
	soon(t, "the nodes know each other by their proxies", func() bool {
		for _, r := range c.Nodes {
			text := do(t, r, "CLUSTER", "NODES").(string)
			for _, port := range f.ports {
				if !strings.Contains(text, ":"+port+"@") {
					return false
				}
			}
		}
		return c.Works() == nil
	})
	return f
}

// addrs are the addresses of the proxies.
func (f *fronts) addrs() string {
	var all []string
	for _, p := range f.all {
		all = append(all, p.Addr())
	}
	return strings.Join(all, ",")
}

// master tells which server most of three sentinels say is the master, or -1.
func (f *fronts) master(s *servers.SentinelSet) int {
	votes := make(map[string]int)
	for _, one := range s.Sentinels {
		v, err := (&servers.RedisServer{Server: one}).Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name)
		if pair, ok := v.([]any); err == nil && ok && len(pair) == 2 {
			votes[fmt.Sprint(pair[1])]++
		}
	}
	return slices.IndexFunc(f.ports, func(port string) bool { return votes[port] > 1 })
}

// is tells whether a server says that it is a master, or a slave. Who is about to
// become the other cuts its connections.
func is(r *servers.RedisServer, role string) bool {
	v, err := r.Do("INFO", "replication")
	return err == nil && strings.Contains(v.(string), "role:"+role)
}

// A master is cut off, and neither killed nor stopped: its connections hang, and
// it takes itself for the master all the while another has its place. Clients go on
// by themselves, then and when it is back.
func TestMastersInABlackHole(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Run("sentinels", func(t *testing.T) {
		t.Parallel()
		s := servers.Sentinels(t, 2)
		f := beforeSentinels(t, s)
		url := fmt.Sprintf("redis-sentinel://%s/%s", strings.Join(s.Addrs(), ","), s.Name)
		underLoad(t, func() driver.Store { return openURL(t, url) }, func(res *resource) {
			for range 2 {
				old := f.master(s)
				if old < 0 {
					t.Fatal("the sentinels do not agree on a master")
				}
				f.all[old].Set(proxy.BlackHole)
				soon(t, "another is the master", func() bool { now := f.master(s); return now >= 0 && now != old })
				res.goesOn(t, "the master is cut off")
				if !is(s.Servers[old], "master") {
					t.Error("the one that is cut off knows that it is no longer the master: the test proves less")
				}
				f.all[old].Heal()
				soon(t, "it is a replica", func() bool { return is(s.Servers[old], "slave") })
				res.goesOn(t, "and is back")
			}
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := servers.Cluster(t, 3)
		f := beforeCluster(t, c)
		const masters = 3
		old := nodeOf(c.Nodes[:masters], "name0")
		replica := c.Nodes[old+masters]
		underLoad(t, func() driver.Store { return openURL(t, "redis-cluster://"+f.addrs()) }, func(res *resource) {
			f.all[old].Set(proxy.BlackHole)
			do(t, replica, "CLUSTER", "FAILOVER", "TAKEOVER")
			soon(t, "its replica is the master", func() bool { return is(replica, "master") })
			res.goesOn(t, "a master is cut off")
			f.all[old].Heal()
			soon(t, "it is a replica", func() bool { return is(c.Nodes[old], "slave") })
			res.goesOn(t, "and is back")
		})
	})
}

// nodeOf tells which of a cluster's masters has the name.
func nodeOf(masters []*servers.RedisServer, name string) int {
	return slices.IndexFunc(masters, func(r *servers.RedisServer) bool {
		_, err := r.Do("GET", redislock.Keys(name, false)[0])
		return err == nil
	})
}

// A master of a cluster that hangs spoils what it has, and nothing of the others:
// neither of the leases that one client holds, nor in one call about all of them.
func TestADeadShardSpoilsNoOther(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	t.Parallel()
	c := servers.Cluster(t, 3)
	f := beforeCluster(t, c)
	s := openURL(t, "redis-cluster://"+f.addrs())
	const masters, ttl = 3, 3 * time.Second
	var names [masters]string // one of each
	for i := 0; slices.Contains(names[:], ""); i++ {
		name := fmt.Sprint("name", i)
		names[nodeOf(c.Nodes[:masters], name)] = name
	}
	client, err := dibs.New(openURL(t, "redis-cluster://"+f.addrs()), nil)
	if err != nil {
		t.Fatal(err)
	}
	var leases []*dibs.Lease
	for _, name := range names {
		l, err := client.With(dibs.Settings{TTL: ttl}).Mutex(name).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	f.all[0].Set(proxy.BlackHole)
	select {
	case <-leases[0].Context().Done():
	case <-time.After(patience):
		t.Error("a lease is trusted whose master is silent")
	}
	time.Sleep(2 * ttl) // what the others outlive
	for i, l := range leases {
		if err := l.Check(); i > 0 && err != nil {
			t.Errorf("the lease on %q, with the master of %q cut off: %v", names[i], names[0], err)
		}
	}
	f.all[0].Heal()
	for i, l := range leases {
		if err := l.Release(t.Context()); i > 0 && err != nil {
			t.Error(err)
		}
	}

	var claims []driver.Claim
	for _, name := range names {
		m := drivertest.Mutex(name, time.Minute)
		soon(t, "the name is free", func() bool {
			g, err := s.Acquire(t.Context(), m)
			m.Token = g.Token
			return err == nil
		})
		claims = append(claims, m)
	}
	f.all[0].Set(proxy.BlackHole)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	proofs, err := s.Renew(ctx, claims)
	if err != nil || len(proofs) != masters {
		t.Fatalf("renewed as %+v, %v", proofs, err)
	}
	for i, p := range proofs {
		if i == 0 && (p.Err == nil || driver.Certain(p.Err)) || i > 0 && p.Err != nil {
			t.Errorf("%q, with the master of %q cut off: %v", names[i], names[0], p.Err)
		}
	}
	f.all[0].Heal()
	soon(t, "the claim is proved again", func() bool { return drivertest.RenewOne(t.Context(), s, claims[0]).Err == nil })
}
