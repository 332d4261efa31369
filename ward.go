package dibs

import (
	"container/heap"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A ward is a claim in the keeper's care. Instants are the clock's.
type ward struct {
	claim driver.Claim
	owner owner         // a *Lease or a *waiter
	until time.Duration // trusted until then; never for a place
	due   time.Duration // renew then
	slot  int           // in the heap, plus 1; 0: not in care
	tries int           // renewals without a clear answer since the last clear one
	busy  bool          // a renewal is under way
	idle  chan struct{} // closed when that one has returned; nil if nobody waits for it
	last  error         // why the last renewal got no clear answer
}

// An owner is told what became of its ward, without the keeper's lock.
type owner interface {
	expired(now time.Duration, last error) // trust has run out; the ward is out of care
	refusedBy(err error)                   // the store said no; the ward is out of care
}

// key is when the keeper must next look at w.
func (w *ward) key() time.Duration {
	if w.busy {
		return w.until
	}
	return min(w.until, w.due)
}

// wards is a heap by key.
type wards []*ward

func (h wards) Len() int           { return len(h) }
func (h wards) Less(i, j int) bool { return h[i].key() < h[j].key() }
func (h wards) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i+1, j+1
}

func (h *wards) Push(x any) {
	w := x.(*ward)
	*h = append(*h, w)
	w.slot = len(*h)
}

func (h *wards) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.slot = 0
	return w
}

// fix restores the order after w's key changed.
func (h *wards) fix(w *ward) { heap.Fix(h, w.slot-1) }

// snapshot returns the lease's claim as it is now.
func (l *Lease) snapshot() driver.Claim {
	l.core.keeper.mu.Lock()
	defer l.core.keeper.mu.Unlock()
	return l.claim
}
