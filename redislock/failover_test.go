package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs"
	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// a resource checks fences, as one should, and counts what it would have missed.
type resource struct {
	mu       sync.Mutex // guards what follows
	newest   map[string]uint64
	inside   map[string]int
	refused  int // writes under an older fence than one that was seen
	overlaps int // two that believe they hold, at once
	turns    int
}

// work is done under a lease.
func (r *resource) work(t *testing.T, l *dibs.Lease) {
	name, fence := l.Name(), l.Fence()
	r.mu.Lock()
	if r.inside[name] > 0 {
		r.overlaps++
	}
	r.inside[name]++
	r.mu.Unlock()
	select {
	case <-time.After(rand.N(10 * time.Millisecond)):
	case <-l.Context().Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside[name]--
	if l.Check() != nil {
		return // it knows that it may not
	}
	switch last := r.newest[name]; {
	case fence == last:
		t.Errorf("%q: two grants under fence %d", name, fence)
	case fence < last:
		r.refused++
		return
	}
	r.newest[name] = fence
	r.turns++
}

// contend has clients take turns on a few names until ctx ends. They go on by
// themselves, whatever happens to the servers.
func contend(t *testing.T, ctx context.Context, res *resource, open func() driver.Store) (wait func()) {
	var wg sync.WaitGroup
	res.newest, res.inside = make(map[string]uint64), make(map[string]int)
	for range 4 {
		client, err := dibs.New(open(), nil)
		if err != nil {
			t.Fatal(err)
		}
		client = client.With(dibs.Settings{TTL: 3 * time.Second, StoreDown: dibs.WaitDown, Poll: 200 * time.Millisecond})
		wg.Go(func() { // ends with ctx
			for ctx.Err() == nil {
				l, err := client.Mutex(fmt.Sprint("name", rand.IntN(3))).Lock(ctx)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					continue
				}
				res.work(t, l)
				_ = l.Release(context.WithoutCancel(ctx)) // lost, or unknown: the next one waits
			}
		})
	}
	return wg.Wait
}

// goesOn waits for some more turns.
func (r *resource) goesOn(t *testing.T, what string) {
	t.Helper()
	r.mu.Lock()
	want := r.turns + 10
	r.mu.Unlock()
	soon(t, what+": clients go on", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.turns >= want
	})
}

// underLoad has clients take turns while a nemesis is at work.
func underLoad(t *testing.T, open func() driver.Store, nemesis func(res *resource)) *resource {
	var res resource
	ctx, cancel := context.WithCancel(t.Context())
	wait := contend(t, ctx, &res, open)
	end := func() { cancel(); wait() }
	defer end()
	res.goesOn(t, "at first")
	nemesis(&res)
	end()
	t.Logf("%d turns, %d writes fenced off, %d overlaps", res.turns, res.refused, res.overlaps)
	return &res
}

// Masters and nodes are killed, stopped and started under load: clients go on by
// themselves, and no grant is ever fenced off by an older one's fence.
func TestTopologiesUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("real time")
	}
	must := func(t *testing.T, errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("sentinels", func(t *testing.T) {
		t.Parallel()
		s := servers.Sentinels(t, 2)
		url := fmt.Sprintf("redis-sentinel://%s/%s", strings.Join(s.Addrs(), ","), s.Name)
		underLoad(t, func() driver.Store { return openURL(t, url) }, func(res *resource) {
			must(t, s.Servers[0].Kill())
			res.goesOn(t, "the master was killed")
			must(t, s.Servers[0].Restart())
			m, err := s.Master()
			must(t, err, m.Pause())
			res.goesOn(t, "the next one hangs")
			must(t, m.Resume())
			res.goesOn(t, "and goes on")
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := servers.Cluster(t, 3)
		underLoad(t, func() driver.Store { return openURL(t, "redis-cluster://"+strings.Join(c.Addrs(), ",")) }, func(res *resource) {
			must(t, c.Nodes[0].Kill())
			res.goesOn(t, "a master was killed")
			must(t, c.Nodes[0].Restart(), c.Works())
			must(t, c.Nodes[1].Pause())
			res.goesOn(t, "another hangs")
			must(t, c.Nodes[1].Resume(), c.Works())
			res.goesOn(t, "and goes on")
		})
	})
	t.Run("quorum", func(t *testing.T) {
		t.Parallel()
		rs := servers.Redises(t, 5)
		behind, ps := newQuorum(t, addrsOf(rs), "prefix=p").proxied(t)
		res := underLoad(t, func() driver.Store { return behind.open(t) }, func(res *resource) {
			must(t, rs[0].Kill())
			res.goesOn(t, "a node was killed")
			must(t, rs[1].Pause())
			res.goesOn(t, "another hangs")
			must(t, rs[1].Resume())
			ps[2].Set(proxy.BlackHole)
			res.goesOn(t, "and goes on, and a third is cut off")
			ps[2].Heal()
			for i := range 6 {
				p := ps[1+i%4]
				p.Set([]proxy.Mode{proxy.DropReplies, proxy.CutAfterRequest, proxy.BlackHole}[i%3])
				res.goesOn(t, "a node at a time has trouble")
				p.Heal()
			}
		})
		if res.overlaps > 0 || res.refused > 0 {
			t.Errorf("%d overlaps, %d writes fenced off: no node lost its memory, and no clock jumped", res.overlaps, res.refused)
		}
	})
}

// A grant that too few replicas confirm is given back.
func TestReplicasConfirm(t *testing.T) {
	t.Parallel()
	master := servers.Redis(t)
	link := proxy.New(t, master.Addr())
	port := link.Addr()[strings.LastIndexByte(link.Addr(), ':')+1:]
	replica := servers.Redis(t, servers.RedisArgs("--replicaof", "127.0.0.1", port, "--repl-diskless-sync-delay", "0"))
	soon(t, "the replica follows", func() bool {
		return strings.Contains(do(t, replica, "INFO", "replication").(string), "master_link_status:up")
	})
	s := open(t, master.Addr(), "replicas=1")
	m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
	if do(t, replica, "EXISTS", "dibs:{name}") != int64(1) {
		t.Error("it was confirmed, and the replica has not heard of it")
	}
	if _, err := s.Acquire(t.Context(), drivertest.Mutex("name", time.Minute)); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("held by another: %v", err)
	}
	drivertest.MustRelease(t, s, m)
	link.Set(proxy.BlackHole)
	_, err := s.Acquire(t.Context(), drivertest.Mutex("name", time.Minute))
	if err == nil || driver.Certain(err) || !strings.Contains(err.Error(), "given back") {
		t.Errorf("nobody confirms it: %v", err)
	}
	if do(t, master, "EXISTS", "dibs:{name}") != int64(0) {
		t.Error("it was not given back")
	}
	for _, params := range []string{"replicas=many", "replicas=-1"} {
		_, err := driver.Open(t.Context(), "redis://"+master.Addr()+"?"+params)
		isRejected(t, err)
	}
}

// shown is the TTL of a lock that is shown to be held by two.
const shown = 30 * time.Second

// overtakes has b lock the name of a lease that is trusted yet, by a client whose TTL
// is shown: two have it at once, the second under the larger token, and the first
// learns of it at its next renewal.
func overtakes(t *testing.T, b *dibs.Client, first *dibs.Lease) {
	t.Helper()
	began := time.Now()
	second, err := b.Mutex(first.Name()).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release(context.Background())
	if err := first.Check(); err != nil {
		t.Errorf("the first holder knows already, and so no two were shown: %v", err)
	}
	if second.Fence() <= first.Fence() {
		t.Errorf("the second holder has fence %d, and the first %d", second.Fence(), first.Fence())
	}
	select {
	case <-first.Context().Done():
	case <-time.After(2 * patience):
		t.Fatal("the first holder never learns")
	}
	var lost *dibs.LostError
	if cause := context.Cause(first.Context()); !errors.As(cause, &lost) || lost.Reason != dibs.Taken {
		t.Errorf("the first holder is told %v", cause)
	}
	if took := time.Since(began); took > shown-5*time.Second {
		t.Errorf("the first holder learns after %v, by the end of its TTL of %v, and not by its renewal", took, shown)
	}
}

// The other cells of the stores' tables in which two may have a name at once: a server
// that restarts without its data, and a quorum most of whose nodes end a claim early.
func TestTwoAtOnce(t *testing.T) {
	client := func(t *testing.T, s driver.Store) *dibs.Client {
		c, err := dibs.New(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.With(dibs.Settings{TTL: shown})
	}
	lock := func(t *testing.T, c *dibs.Client) *dibs.Lease {
		l, err := c.Mutex("name").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	t.Run("a restart without data", func(t *testing.T) {
		t.Parallel()
		r := servers.Redis(t)
		first := lock(t, client(t, open(t, r.Addr(), "")))
		if err := errors.Join(r.Kill(), r.Restart()); err != nil {
			t.Fatal(err)
		}
		overtakes(t, client(t, open(t, r.Addr(), "")), first)
	})
	t.Run("nodes that end claims early", func(t *testing.T) {
		t.Parallel()
		rs := servers.Redises(t, 3)
		q := newQuorum(t, addrsOf(rs), "prefix=p")
		first := lock(t, client(t, q.open(t)))
		soon(t, "all nodes have it", func() bool { return len(keysOn(t, rs, "p")) == 3 })
		for _, r := range rs[1:] {
			do(t, r, "SET", "p:redlock:name:{name}", fmt.Sprintf("f%d 0 1", first.Fence()))
		}
		overtakes(t, client(t, q.open(t)), first)
	})
}

// A replica that had not heard of a lock takes the place of its master: the lock
// is given to a second holder, under a larger token, and the first learns of it
// within one renewal. The replica is cut off, and not stopped: the bytes that wait
// for a stopped one are there when it goes on.
func TestFailoverOfAStaleReplica(t *testing.T) {
	t.Parallel()
	master := servers.Redis(t)
	link := proxy.New(t, master.Addr())
	port := link.Addr()[strings.LastIndexByte(link.Addr(), ':')+1:]
	replica := servers.Redis(t, servers.RedisArgs("--replicaof", "127.0.0.1", port, "--repl-diskless-sync-delay", "0"))
	var now atomic.Pointer[string]
	where := func(r *servers.RedisServer) { a := r.Addr(); now.Store(&a) }
	where(master)
	locate := func(context.Context) (string, error) { return *now.Load(), nil }
	open := func() driver.Store {
		s, err := redislock.OpenAt(t.Context(), "redis://"+master.Addr(), locate)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	soon(t, "the replica follows", func() bool {
		v := do(t, replica, "INFO", "replication").(string)
		return strings.Contains(v, "master_link_status:up")
	})
	a, err := dibs.New(open(), nil)
	if err != nil {
		t.Fatal(err)
	}
	control, err := a.Mutex("control").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer control.Release(context.Background())
	soon(t, "the replica has it", func() bool { return do(t, replica, "EXISTS", "dibs:{control}") == int64(1) })

	link.Set(proxy.BlackHole)
	first, err := a.With(dibs.Settings{TTL: shown}).Mutex("name").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	if do(t, replica, "EXISTS", "dibs:{name}") != int64(0) {
		t.Fatal("the replica has heard of the lock: the test proves nothing")
	}
	do(t, replica, "REPLICAOF", "NO", "ONE")
	where(replica)
	b, err := dibs.New(open(), nil)
	if err != nil {
		t.Fatal(err)
	}
	overtakes(t, b, first)
	if err := control.Check(); err != nil {
		t.Errorf("a lock that the replica knew was lost: %v", err)
	}
}

// A master that restarts without its data goes on from larger tokens.
func TestTokensGrowAcrossARestartWithoutData(t *testing.T) {
	t.Parallel()
	r := servers.Redis(t)
	s := open(t, r.Addr(), "")
	var last uint64
	for range 3 {
		m, _ := drivertest.MustAcquire(t, s, drivertest.Mutex("name", time.Minute))
		if m.Token <= last {
			t.Fatalf("token %d after %d", m.Token, last)
		}
		last = m.Token
		if err := errors.Join(r.Kill(), r.Restart()); err != nil {
			t.Fatal(err)
		}
		soon(t, "the client is connected again", func() bool {
			return errors.Is(s.Release(t.Context(), m), driver.ErrNotHeld)
		})
	}
}

// All keys of a name are in one slot, whatever the name, as the server says.
func TestKeysOfANameShareASlot(t *testing.T) {
	t.Parallel()
	conn, err := servers.Redis(t, servers.RedisArgs("--cluster-enabled", "yes")).Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"{", "}", "{}", "%", "%7D", ":", "a", "é", " ", "🔒", "l", "mark"}
	for range 10_000 {
		var name strings.Builder
		for range 1 + rnd.IntN(8) {
			name.WriteString(alphabet[rnd.IntN(len(alphabet))])
		}
		for _, plain := range []bool{false, true} {
			var slots []int64
			for _, key := range redislock.ClusterKeys(name.String(), plain) {
				v, err := conn.Do("CLUSTER", "KEYSLOT", key)
				if err != nil {
					t.Fatal(err)
				}
				slots = append(slots, v.(int64))
			}
			for _, n := range slots {
				if n != slots[0] || int(n) != redislock.Slot(redislock.ClusterKeys(name.String(), plain)[0]) {
					t.Fatalf("the keys of %q are in the slots %v", name.String(), slots)
				}
			}
		}
	}
}
