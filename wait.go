package dibs

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/dibslock/dibs/driver"
)

// wait asks until there is a lease, ctx or the client ends, the store says that
// asking is of no use, or it has been silent for too long.
//
// The order is ask, subscribe, ask again, sleep (law 28): a change between the
// first ask and the subscription is found by the second ask, and one after the
// subscription is signalled. Where a crowd is expected it is subscribe, ask,
// sleep: every change after the ask is signalled. A signal is a hint, and the ask
// is the truth.
func (a *attempt) wait(ctx context.Context) (*Lease, error) {
	crowd, name := &a.client.core.crowd, a.claim.Name
	if crowd.expected(name) {
		w := newWaiter(*a)
		w.subscribe(ctx)
		return w.wait(ctx, nil)
	}
	if cause := a.over(ctx); cause != nil {
		return nil, a.gaveUp(cause, nil)
	}
	lease, err := a.ask(ctx)
	if err == nil {
		return lease, nil // most locks are free: nothing was made for a wait
	}
	return newWaiter(*a).wait(ctx, err)
}

// wait is attempt.wait from the failure of the first ask on, which is err, or
// from before it, if that is nil.
func (w *waiter) wait(ctx context.Context, err error) (lease *Lease, _ error) {
	a := w.attempt
	c := a.client.core
	defer func() { w.leave() }() // of whichever is the last
	var last error
	for try := 0; ; {
		cause := a.over(ctx)
		if err != nil && (cause == nil || driver.Certain(err)) {
			last = err // an ask that the end of the wait cut off says nothing
		}
		var held *HeldError
		switch {
		case err == nil:
			// Nothing was asked yet.
		case errors.As(err, &held):
			if a.nested || held.Deadlock {
				w.takeBack()
				return nil, &DeadlockError{Name: a.claim.Name, Refusal: held}
			}
			try = 0
			w.hear(held)
			c.hooks.waiting(ctx, a.progress(), held)
			if w.subscribe(ctx) {
				break // and ask again
			}
			if lease := w.sleep(ctx, w.poll(held.RetryAfter)); lease != nil {
				return lease, nil
			}
		case errors.Is(err, errLate):
			// That claim was given back: what comes next is another one.
			w.leave()
			a.claim.ID, a.tainted = newID(), 0
			w = newWaiter(*a)
			a = w.attempt
		case driver.Certain(err), errors.Is(err, ErrClosed):
			w.takeBack()
			return nil, a.fail(err)
		default:
			c.hooks.retrying(ctx, a.progress(), err)
			if a.client.set.StoreDown == FailDown && c.clock.now()-a.clear >= a.claim.TTL {
				w.takeBack()
				return nil, a.down(err)
			}
			try++
			// A store that takes no asks, such as one out of memory, may hand over still.
			if lease := w.sleep(ctx, backoff(try, 10*time.Millisecond, time.Second)); lease != nil {
				return lease, nil
			}
		}
		if cause := a.over(ctx); cause != nil {
			w.takeBack()
			return nil, a.gaveUp(cause, last)
		}
		if lease, err = a.ask(ctx); err == nil {
			return lease, nil
		}
	}
}

func (a *attempt) progress() AcquireInfo {
	info := a.info
	info.Waited = a.client.core.clock.now() - a.began
	return info
}

// A waiter is an attempt that waits. Its place in line, if it has one, is in the
// keeper's care.
type waiter struct {
	ward
	attempt *attempt
	wake    chan struct{} // capacity 1: the keeper has news
	signals <-chan driver.Signal
	unwatch func() // ends the subscription; nil: there is none
	deaf    bool   // the store can't signal

	// Guarded by the keeper's lock. Instants are the clock's.
	place   uint64        // the place that the last refusal gave; 0: none
	refused time.Duration // when the last ask that was refused was sent (law 29)
	doubt   time.Duration // when a renewal of the place was last sent without a clear answer
	grant   *driver.Grant // what the keeper heard that the place was handed
	granted time.Duration // and when it had asked
}

// newWaiter makes a waiter of an attempt, which it goes on with.
func newWaiter(a attempt) *waiter {
	w := &waiter{attempt: &a, wake: make(chan struct{}, 1)}
	w.ward.claim, w.ward.owner, w.ward.until = a.claim, w, never
	return w
}

// leave ends the subscription and takes the place out of care.
func (w *waiter) leave() {
	if w.unwatch != nil {
		w.unwatch()
		w.unwatch = nil
	}
	k := w.attempt.client.core.keeper
	k.mu.Lock()
	k.removeLocked(&w.ward)
	k.mu.Unlock()
}

// takeBack gives up what the attempt may have in the store; that renewals of
// its place got no clear answer counts too (law 38).
func (w *waiter) takeBack() {
	w.leave()
	k := w.attempt.client.core.keeper
	k.mu.Lock()
	doubt := w.doubt
	k.mu.Unlock()
	w.attempt.tainted = max(w.attempt.tainted, doubt)
	w.attempt.takeBack()
}

// hear notes a refusal, and has the place that it gave cared for.
func (w *waiter) hear(held *HeldError) {
	k, asked := w.attempt.client.core.keeper, w.attempt.asked
	k.mu.Lock()
	w.place, w.refused = held.Place, max(w.refused, asked)
	w.grant = nil
	kept := w.slot != 0
	if kept && held.Place == 0 {
		k.removeLocked(&w.ward)
	}
	k.mu.Unlock()
	if !kept && held.Place != 0 {
		k.adopt(&w.ward, asked+w.claim.Patience/2)
	}
}

// subscribe tells whether it subscribed just now, so that one must ask again.
func (w *waiter) subscribe(ctx context.Context) bool {
	if w.unwatch != nil || w.deaf {
		return false
	}
	watcher, ok := w.attempt.client.core.store.(driver.Watcher)
	if !ok {
		w.deaf = true
		return false
	}
	call, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(w.attempt.client.set.CallTimeout, cancel)
	signals, stop, err := watcher.Watch(call, w.claim)
	if !timer.Stop() && err == nil {
		stop() // it came too late: the subscription has ended with call
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		w.deaf = errors.Is(err, errors.ErrUnsupported)
		return false // polling goes on meanwhile, and the next round tries again
	}
	w.signals = signals
	w.unwatch = func() { stop(); cancel() }
	return true
}

// poll is when to ask again if nothing is heard.
func (w *waiter) poll(retryAfter time.Duration) time.Duration {
	set := w.attempt.client.set
	d := set.Poll - rand.N(set.Poll/4+1)
	if retryAfter > 0 {
		d = min(d, retryAfter)
	}
	return d
}

// sleep waits for a signal, for the keeper, or for d. It returns a lease if it was
// told of a grant that can be trusted, and nil if it is time to ask again.
func (w *waiter) sleep(ctx context.Context, d time.Duration) *Lease {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case s, open := <-w.signals:
			if !open {
				w.unwatch()
				w.unwatch, w.signals = nil, nil
				return nil
			}
			if lease, ask := w.signalled(s); lease != nil || ask {
				return lease
			}
		case <-w.wake:
			return w.handed()
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		case <-w.attempt.client.core.closing:
			return nil
		}
	}
}

// signalled judges a signal (law 29). The hand-over that it tells of came after
// the store had refused our last ask, so trust may run from the send of that
// ask; never from hearing. What is about another place is dropped.
func (w *waiter) signalled(s driver.Signal) (lease *Lease, ask bool) {
	k := w.attempt.client.core.keeper
	k.mu.Lock()
	place, asked := w.place, w.refused
	k.mu.Unlock()
	switch {
	case s.Place == 0 && s.Grant == nil:
		return nil, true
	case s.Place != place:
		return nil, false
	case s.Grant == nil:
		return nil, true
	}
	return w.take(*s.Grant, asked), true
}

// handed takes what the keeper heard that the place was handed, if anything.
func (w *waiter) handed() *Lease {
	k := w.attempt.client.core.keeper
	k.mu.Lock()
	grant, asked := w.grant, w.granted
	w.grant = nil
	k.mu.Unlock()
	if grant == nil {
		return nil // evicted: ask for a new place (law 27)
	}
	return w.take(*grant, asked)
}

// take makes a lease of a grant whose trust runs from asked. If too little is
// left, the next ask adopts it (law 3). Nothing is given back here, however late
// it has become meanwhile: that ask has the same ID, and a release on its way
// would end what it is granted.
func (w *waiter) take(g driver.Grant, asked time.Duration) *Lease {
	a, c := w.attempt, w.attempt.client.core
	now := c.clock.now()
	if trustedUntil(asked, g.TTL)-now < g.TTL/8 {
		return nil
	}
	l := a.client.newLease(a.claim, g, asked, a.tainted)
	if !c.keeper.adopt(&l.ward, now) { // it lives for the hand-over alone: renew it at once
		return nil // the client is closed, which ends the wait
	}
	return l
}

// settlePlaceLocked judges the proof of a place; the keeper's lock is held.
func (k *keeper) settlePlaceLocked(w *waiter, asked time.Duration, p driver.Proof) {
	var held *HeldError
	switch {
	case p.Err == nil:
		w.grant, w.granted = p.Grant, asked // nil, if it told nothing: ask
		k.removeLocked(&w.ward)
		signal(w.wake)
	case errors.As(p.Err, &held):
		w.ward.refreshed(asked)
		if held.Place == w.place { // and not one that the waiter's own ask has yet to hear of
			w.refused = max(w.refused, asked)
		}
		k.wards.fix(&w.ward)
	case driver.Certain(p.Err):
		k.removeLocked(&w.ward)
		signal(w.wake)
	default:
		w.doubt = asked
		k.retryLocked(&w.ward, k.core.clock.now(), p.Err)
	}
}

// refreshed schedules the next renewal of a place.
func (w *ward) refreshed(asked time.Duration) {
	w.tries, w.last = 0, nil
	w.due = asked + w.claim.Patience/2
}

// expired never happens to a place.
func (w *waiter) expired(time.Duration, error) {}

// refused: the store told of its end by itself.
func (w *waiter) refusedBy(error) { signal(w.wake) }
