package pglock_test

import (
	"sync"
	"testing"

	"github.com/dibslock/dibs/drivertest"
	"github.com/dibslock/dibs/drivertest/proxy"
)

// A wire is a drivertest.Link whose faults strike on the way between a client and
// the server. Delays are those of a link in the process: the proxy's are the same
// in both directions.
type wire struct {
	*drivertest.LocalLink
	p *proxy.Proxy

	mu       sync.Mutex // guards all below
	fault    drivertest.Fault
	injected map[drivertest.Fault]int
	before   proxy.Stats // when the fault began
}

func newWire(t testing.TB, target string) *wire {
	return &wire{LocalLink: drivertest.NewLink(), p: proxy.New(t, target), injected: make(map[drivertest.Fault]int)}
}

// Set is Link's. A late request waits in the process: on the wire, those that come
// after it could not overtake it.
func (w *wire) Set(f drivertest.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.countLocked()
	old := w.fault
	w.fault = f
	switch f {
	case drivertest.Pass:
		if old == drivertest.BlackHole { // what was lost stays lost
			w.p.Set(proxy.Refuse)
			w.p.CutAll()
		}
		w.p.Heal()
	case drivertest.BlackHole:
		w.p.Set(proxy.BlackHole)
	case drivertest.DropReplies:
		w.p.Set(proxy.DropReplies)
	case drivertest.CutBefore:
		w.p.Set(proxy.Refuse)
		w.p.CutAll()
	case drivertest.CutAfter:
		w.p.Set(proxy.CutAfterRequest)
	}
	w.LocalLink.Set(onlyLate(f))
	w.before = w.p.Stats()
}

func onlyLate(f drivertest.Fault) drivertest.Fault {
	if f == drivertest.Late {
		return f
	}
	return drivertest.Pass
}

// Injected is Link's.
func (w *wire) Injected() map[drivertest.Fault]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.countLocked()
	n := w.LocalLink.Injected()
	for f, k := range w.injected {
		n[f] += k
	}
	return n
}

// countLocked counts what the present fault has struck since it was counted last.
func (w *wire) countLocked() {
	now := w.p.Stats()
	var k int
	switch w.fault {
	case drivertest.BlackHole:
		k = int(now.Held - w.before.Held)
	case drivertest.DropReplies:
		k = int(now.Dropped - w.before.Dropped)
	case drivertest.CutBefore:
		k = int(now.Refused - w.before.Refused)
	case drivertest.CutAfter:
		k = int(now.Cuts - w.before.Cuts)
	}
	if k > 0 {
		w.injected[w.fault] += k
	}
	w.before = now
}
