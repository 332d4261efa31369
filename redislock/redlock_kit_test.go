package redislock_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
	"github.com/dibslock/dibs/redislock"
)

// a quorum is nodes that were made one, in a namespace of their own.
type quorum struct {
	addrs  []string
	params string
}

// newQuorum makes a quorum of servers.
func newQuorum(t testing.TB, addrs []string, params string) quorum {
	t.Helper()
	q := quorum{addrs, params}
	if err := redislock.RedlockInit(t.Context(), q.url()); err != nil {
		t.Fatal(err)
	}
	return q
}

func (q quorum) url() string { return "redlock://" + strings.Join(q.addrs, ",") + "/?" + q.params }

// open opens a client.
func (q quorum) open(t testing.TB) driver.Store {
	t.Helper()
	s, err := driver.Open(t.Context(), q.url())
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

// proxied is the quorum behind proxies, one for each node.
func (q quorum) proxied(t testing.TB) (quorum, []*proxy.Proxy) {
	t.Helper()
	behind := quorum{params: q.params}
	var all []*proxy.Proxy
	for _, addr := range q.addrs {
		p := proxy.New(t, addr)
		all = append(all, p)
		behind.addrs = append(behind.addrs, p.Addr())
	}
	return behind, all
}

// addrsOf are the addresses of servers.
func addrsOf(rs []*servers.RedisServer) (addrs []string) {
	for _, r := range rs {
		addrs = append(addrs, r.Addr())
	}
	return addrs
}

// wires are a link through proxies, one for each node, that fail together.
type wires struct {
	*drivertest.LocalLink
	t     testing.TB
	all   []*proxy.Proxy
	store driver.Store

	mu       sync.Mutex // guards what follows
	fault    drivertest.Fault
	before   []proxy.Stats
	injected map[drivertest.Fault]int
}

// cut opens a client behind proxies.
func (q quorum) cut(t testing.TB) (driver.Store, drivertest.Link) {
	t.Helper()
	behind, all := q.proxied(t)
	s := behind.open(t)
	w := &wires{LocalLink: drivertest.NewLink(), t: t, all: all, store: s, injected: make(map[drivertest.Fault]int)}
	return drivertest.Wrap(s, w.Around), w
}

func (w *wires) Set(f drivertest.Fault) {
	w.mu.Lock()
	w.countLocked()
	w.fault, w.before = f, w.stats()
	w.mu.Unlock()
	for _, p := range w.all {
		switch f {
		case drivertest.Pass:
			p.Heal()
		case drivertest.BlackHole, drivertest.Late:
			p.Set(proxy.BlackHole)
		case drivertest.DropReplies:
			p.Set(proxy.DropReplies)
		case drivertest.CutAfter:
			p.Set(proxy.CutAfterRequest)
		case drivertest.CutBefore:
			p.Set(proxy.Refuse)
			p.CutAll()
		}
	}
	if f == drivertest.Pass {
		w.settle()
	}
}

// settle waits until the client has its connections again.
func (w *wires) settle() {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if redislock.Answering(w.t.Context(), w.store) == len(w.all) || time.Now().After(end) {
			return
		}
	}
}

func (w *wires) Land() {
	for _, p := range w.all {
		p.Heal()
	}
	w.settle()
}

func (w *wires) Injected() map[drivertest.Fault]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.countLocked()
	w.before = w.stats()
	return maps.Clone(w.injected)
}

func (w *wires) stats() (all []proxy.Stats) {
	for _, p := range w.all {
		all = append(all, p.Stats())
	}
	return all
}

// countLocked counts a fault that has struck since the last count once.
func (w *wires) countLocked() {
	if w.fault == drivertest.Pass || w.before == nil {
		return
	}
	for i, now := range w.stats() {
		old := w.before[i]
		if now.Refused > old.Refused || now.Cuts > old.Cuts || now.Held > 0 || now.Dropped > old.Dropped {
			w.injected[w.fault]++
			return
		}
	}
}

// keysOn lists what the nodes have of names, by node.
func keysOn(t testing.TB, rs []*servers.RedisServer, prefix string) (all []string) {
	t.Helper()
	for i, r := range rs {
		for _, k := range do(t, r, "KEYS", prefix+":redlock:name:*").([]any) {
			v := do(t, r, "GET", k)
			if s, _ := v.(string); !strings.HasPrefix(s, "f") {
				all = append(all, fmt.Sprintf("%d %s=%s", i, k, v))
			}
		}
	}
	slices.Sort(all)
	return all
}
