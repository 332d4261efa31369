package redislock_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dibslock/dibs/driver"
	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/drivertest/proxy"
	"github.com/dibslock/dibs/internal/servers"
	_ "github.com/dibslock/dibs/redislock"
)

func TestMain(m *testing.M) {
	drivertest.StormMain()
	flag.Parse()
	// Most of the tests mostly wait, which several can do at once.
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	servers.Main(m)
}

var spaces atomic.Int64 // numbers the namespaces of tests

// space makes a namespace of the test's own, as a URL's parameters.
func space() string { return fmt.Sprintf("prefix=test%d", spaces.Add(1)) }

// open opens a client that is closed when the test ends.
func open(t testing.TB, addr, params string) driver.Store {
	t.Helper()
	s, err := driver.Open(t.Context(), "redis://"+addr+"/?"+params)
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

// do sends one command and fails the test on an error.
func do(t testing.TB, r *servers.RedisServer, args ...any) any {
	t.Helper()
	v, err := r.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// keysOf lists the keys of a namespace.
func keysOf(t testing.TB, r *servers.RedisServer, params string) []string {
	t.Helper()
	prefix := strings.TrimPrefix(strings.Split(params, "&")[0], "prefix=")
	var keys []string
	for _, k := range do(t, r, "KEYS", prefix+":*").([]any) {
		keys = append(keys, k.(string))
	}
	return keys
}

// a wire is a link through a proxy. What the proxy can't do, a delay in one
// direction, an in-process link does in front of it.
type wire struct {
	*drivertest.LocalLink
	t     testing.TB
	p     *proxy.Proxy
	store driver.Store

	mu       sync.Mutex // guards what follows
	fault    drivertest.Fault
	before   proxy.Stats
	injected map[drivertest.Fault]int
}

// cut opens a client behind a proxy.
func cut(t testing.TB, addr, params string) (driver.Store, drivertest.Link) {
	t.Helper()
	p := proxy.New(t, addr)
	s := open(t, p.Addr(), params)
	w := &wire{LocalLink: drivertest.NewLink(), t: t, p: p, store: s, injected: make(map[drivertest.Fault]int)}
	return drivertest.Wrap(s, w.Around), w
}

func (w *wire) Set(f drivertest.Fault) {
	w.mu.Lock()
	w.countLocked()
	w.fault, w.before = f, w.p.Stats()
	w.mu.Unlock()
	switch f {
	case drivertest.Pass:
		w.p.Heal()
		w.settle()
	case drivertest.BlackHole, drivertest.Late:
		w.p.Set(proxy.BlackHole)
	case drivertest.DropReplies:
		w.p.Set(proxy.DropReplies)
	case drivertest.CutAfter:
		w.p.Set(proxy.CutAfterRequest)
	case drivertest.CutBefore:
		w.p.Set(proxy.Refuse)
		w.p.CutAll()
	}
}

// settle waits until the client has noticed which of its connections are gone.
func (w *wire) settle() {
	probe := drivertest.Mutex("probe", time.Minute)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := w.store.Release(w.t.Context(), probe)
		if driver.Certain(err) || time.Now().After(end) {
			return
		}
	}
}

func (w *wire) Land() {
	w.p.Heal()
	w.settle()
}

func (w *wire) Injected() map[drivertest.Fault]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.countLocked()
	w.before = w.p.Stats()
	return maps.Clone(w.injected)
}

// countLocked counts a fault that has struck since the last count once.
func (w *wire) countLocked() {
	now := w.p.Stats()
	struck := now.Refused > w.before.Refused || now.Cuts > w.before.Cuts || now.Held > 0 || now.Dropped > w.before.Dropped
	if w.fault != drivertest.Pass && struck {
		w.injected[w.fault]++
	}
}

func isRejected(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, driver.ErrRejected) || errors.Is(err, driver.ErrHeld) || errors.Is(err, driver.ErrNotHeld) {
		t.Fatalf("got %v, want an ErrRejected", err)
	}
}
