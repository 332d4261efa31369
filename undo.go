package dibs

import (
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

// maxUndoers is how many claims are taken back at once.
const maxUndoers = 16

// An undoer takes claims back: those of attempts that ended without a clear
// answer, or without their caller. Each is released until the answer is clear,
// and while a request for it that got no clear answer may still land, for a TTL
// after its send, again and again (law 38): a request that lands late leaves no
// orphan. What lands later than that ends by its own TTL.
type undoer struct {
	core   *core
	wake   chan struct{} // capacity 1
	done   chan struct{} // closed when run has returned
	ctx    context.Context
	cancel context.CancelFunc // ends the calls under way

	mu      sync.Mutex // guards what follows
	debts   debts
	running int
	ending  bool // stop was called: no new wait when empty
	abandon bool // stop's ctx has ended
}

// A debt is a claim to take back. Instants are the clock's.
type debt struct {
	claim driver.Claim
	haunt time.Duration // until then a request for it may still land: ask again even after a clear answer
	until time.Duration // it has ended by its TTL after this: give up
	next  time.Duration // when to ask again
	try   int
}

func newUndoer(c *core) *undoer {
	u := &undoer{core: c, wake: make(chan struct{}, 1), done: make(chan struct{})}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	return u
}

// add takes claim back. tainted is when a request for it was last sent without a
// clear answer; 0: never. With Keep the claim becomes kept, as by Release.
func (u *undoer) add(claim driver.Claim, tainted time.Duration) {
	now := u.core.clock.now()
	u.push(&debt{claim: claim, haunt: haunted(claim, tainted), until: now + claim.TTL, next: now})
}

// addLate is add for a claim that was given back just now, but of which a
// request sent at tainted may still land.
func (u *undoer) addLate(claim driver.Claim, tainted time.Duration) {
	haunt := haunted(claim, tainted)
	if haunt == 0 {
		return
	}
	now := u.core.clock.now()
	if now >= haunt {
		return
	}
	claim.Keep = 0 // what lands now was never worked under
	u.push(&debt{claim: claim, haunt: haunt, until: haunt, next: min(haunt, now+claim.TTL/8), try: 4})
}

// haunted tells until when a request sent at tainted may land.
func haunted(claim driver.Claim, tainted time.Duration) time.Duration {
	if tainted == 0 {
		return 0
	}
	return tainted + claim.TTL
}

func (u *undoer) push(d *debt) {
	d.claim.Token = 0 // by ID alone: what lands late has a token of its own (law 4)
	u.mu.Lock()
	heap.Push(&u.debts, d)
	u.mu.Unlock()
	signal(u.wake)
}

// run asks for what is due. It ends when stop was called and nothing is owed, or
// waiting for it was given up.
func (u *undoer) run() {
	defer close(u.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d, wait, end := u.pick()
		switch {
		case end:
			return
		case d != nil:
			go u.ask(d) // ends with the call, which is bounded; counted in running
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-u.wake:
		}
	}
}

// pick returns a debt to ask for now, or how long to wait for one.
func (u *undoer) pick() (d *debt, wait time.Duration, end bool) {
	now := u.core.clock.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case u.running == 0 && (u.abandon || u.ending && len(u.debts) == 0):
		return nil, 0, true
	case u.abandon || len(u.debts) == 0 || u.running == maxUndoers:
		return nil, time.Hour, false // woken by push, ask's end or stop
	case u.debts[0].next > now:
		return nil, min(u.debts[0].next-now, time.Second), false
	}
	u.running++
	return heap.Pop(&u.debts).(*debt), 0, false
}

// ask releases once, and puts the debt back unless it is settled.
func (u *undoer) ask(d *debt) {
	c := u.core
	ctx, cancel := context.WithTimeout(u.ctx, max(d.claim.TTL/3, 10*time.Millisecond))
	sent := c.sent()
	err := c.store.Release(ctx, d.claim)
	c.requested("release", sent, err)
	cancel()

	now := c.clock.now()
	clear := driver.Certain(err)
	again := now < d.haunt || !clear && now < d.until
	if !clear && !again {
		c.log.Warn("claim left to its TTL", "name", d.claim.Name, "driver", c.facts.Driver, "err", err)
	}
	u.mu.Lock()
	u.running--
	if again {
		// The last ask comes right at the end, when nothing can land any more.
		d.next = min(max(d.haunt, d.until), now+backoff(d.try, d.claim.TTL/500, d.claim.TTL/4))
		if clear {
			d.claim.Keep = 0 // what lands from here on was never worked under
			d.next = min(d.next, d.haunt)
		}
		d.try++
		heap.Push(&u.debts, d)
	}
	u.mu.Unlock()
	signal(u.wake)
}

// stop waits until all is taken back or ctx ends, and names what is left.
func (u *undoer) stop(ctx context.Context) []string {
	u.mu.Lock()
	u.ending = true
	u.mu.Unlock()
	signal(u.wake)
	select {
	case <-u.done:
		u.cancel()
		return nil
	case <-ctx.Done():
	}
	u.mu.Lock()
	u.abandon = true
	u.mu.Unlock()
	u.cancel()
	signal(u.wake)
	<-u.done
	u.mu.Lock()
	defer u.mu.Unlock()
	var left []string // the calls that were cut off are back among the debts
	for _, d := range u.debts {
		left = append(left, fmt.Sprintf("%q", d.claim.Name))
	}
	return left
}

// debts is a heap by next.
type debts []*debt

func (h debts) Len() int           { return len(h) }
func (h debts) Less(i, j int) bool { return h[i].next < h[j].next }
func (h debts) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *debts) Push(x any)        { *h = append(*h, x.(*debt)) }
func (h *debts) Pop() any {
	old := *h
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return d
}

// signal wakes whoever waits on a channel of capacity 1.
func signal(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

// backoff grows from first, doubling with each try up to most, with jitter of up
// to a quarter less.
func backoff(try int, first, most time.Duration) time.Duration {
	d := min(max(first, time.Millisecond)<<min(try, 20), most)
	return d - rand.N(d/4+1)
}

// sleep waits for d, and tells false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
