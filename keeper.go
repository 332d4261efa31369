package dibs

import (
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A keeper looks after every claim of a client, leases and places in line alike,
// on one goroutine: it has them renewed in batches, and ends the trust in those
// whose time has come, also while a call hangs.
type keeper struct {
	core *core
	wake chan struct{} // capacity 1: something is due earlier than run thinks
	done chan struct{} // closed when run has returned
	quit chan struct{} // closed by stop

	ctx    context.Context
	cancel context.CancelFunc // ends the calls under way
	calls  sync.WaitGroup     // renewal calls under way

	mu    sync.Mutex // guards what follows and the ward of every claim in care
	wards wards
	byID  map[string]*ward // nil until the store tells of the first loss
	next  time.Duration    // when run will look again by itself
	used  bool             // something was adopted since it looked
	off   bool
}

func newKeeper(c *core) *keeper {
	k := &keeper{
		core: c,
		wake: make(chan struct{}, 1),
		done: make(chan struct{}),
		quit: make(chan struct{}),
	}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// adopt takes w into care, to be renewed at due. It tells false if the keeper
// has stopped.
func (k *keeper) adopt(w *ward, due time.Duration) bool {
	k.mu.Lock()
	if k.off {
		k.mu.Unlock()
		return false
	}
	w.due = due
	heap.Push(&k.wards, w)
	if k.byID != nil {
		k.byID[w.claim.ID] = w
	}
	early := w.key() < k.next
	k.used = true
	k.mu.Unlock()
	if early {
		signal(k.wake)
	}
	return true
}

// removeLocked takes w out of care; k.mu is held. It tells whether it was in.
func (k *keeper) removeLocked(w *ward) bool {
	if w.slot == 0 {
		return false
	}
	heap.Remove(&k.wards, w.slot-1)
	if k.byID != nil {
		delete(k.byID, w.claim.ID)
	}
	return true
}

// drop takes w out of care, if it is, and waits for a renewal under way. The
// error says that ctx ended, or timeout was over, first.
func (k *keeper) drop(ctx context.Context, timeout time.Duration, w *ward) error {
	k.mu.Lock()
	k.removeLocked(w)
	if !w.busy {
		k.mu.Unlock()
		return nil
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// expire ends the trust in l if it has run out at now, whether or not l is still
// in care.
func (k *keeper) expire(l *Lease, now time.Duration) {
	k.mu.Lock()
	out, last := l.until <= now, l.last
	if out {
		k.removeLocked(&l.ward)
	}
	k.mu.Unlock()
	if out {
		l.expired(now, last)
	}
}

// refused ends the care of the claim with id because the store said so.
func (k *keeper) refused(id string, err error) {
	k.mu.Lock()
	if k.byID == nil {
		// Losses are rare, but may come by thousands.
		k.byID = make(map[string]*ward)
		for _, w := range k.wards {
			k.byID[w.claim.ID] = w
		}
	}
	w := k.byID[id]
	out := w != nil && !k.doubtLocked(w, err) && k.removeLocked(w)
	k.mu.Unlock()
	if out {
		w.owner.refusedBy(err)
	}
}

// stop ends the care of everything, cuts off the calls under way, and returns the
// leases that were in care.
func (k *keeper) stop() []*Lease {
	k.mu.Lock()
	k.off = true
	var leases []*Lease
	for _, w := range k.wards {
		w.slot = 0
		if l, ok := w.owner.(*Lease); ok {
			leases = append(leases, l)
		}
	}
	k.wards, k.byID = nil, nil
	k.mu.Unlock()
	close(k.quit)
	k.cancel()
	<-k.done // from here on no call begins
	k.calls.Wait()
	return leases
}

// run sleeps until something is due, a second at the most, so that the resume of
// a suspended machine is noticed (law 33): timers slept with it.
func (k *keeper) run() {
	defer close(k.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(k.step())
		select {
		case <-timer.C:
		case <-k.wake:
		case <-k.quit:
			return
		}
	}
}

// step does what is due and tells how long to sleep.
func (k *keeper) step() time.Duration {
	now := k.core.clock.now()
	k.mu.Lock()
	ended, batches := k.dueLocked(now)
	sleep := time.Hour
	if len(k.wards) > 0 {
		k.next = k.wards[0].key()
		sleep = min(max(k.next-now, 0), time.Second)
	} else if k.used {
		// A program that locks and unlocks all the time need not wake run for
		// each lease: it looks again before any of them is due.
		sleep = time.Second
	}
	k.used, k.next = false, now+sleep
	k.mu.Unlock()

	for _, w := range ended {
		w.owner.expired(now, w.last)
	}
	for _, b := range batches {
		k.calls.Go(func() { k.renew(b, now) }) // ends with the call, which is bounded
	}
	return sleep
}

// dueLocked takes out what has ended, and returns what is due, and with it
// whatever is due within a twelfth of its TTL, in batches that the store can
// take (law 42). What is due within a sixth fills the last batch: that costs no
// call, and batches that were parted by chance find together again.
func (k *keeper) dueLocked(now time.Duration) (ended []*ward, batches [][]*ward) {
	if len(k.wards) == 0 || k.wards[0].key() > now {
		return nil, nil
	}
	var due, stay []*ward
	n := k.core.facts.MaxBatch
	for len(k.wards) > 0 {
		w := k.wards[0]
		soon := w.claim.TTL / 12
		if n > 0 && len(due)%n != 0 {
			soon *= 2
		}
		if w.key() > now+soon {
			break
		}
		switch {
		case w.until <= now:
			k.removeLocked(w)
			ended = append(ended, w)
			continue
		case w.busy || w.due > now+soon:
			stay = append(stay, w) // near its end of trust, that is all
		default:
			due = append(due, w)
		}
		heap.Pop(&k.wards)
	}
	for _, w := range due {
		w.busy = true // in the heap for its end of trust alone
	}
	for _, w := range slices.Concat(due, stay) {
		heap.Push(&k.wards, w)
	}
	return ended, chunks(due, n)
}

// chunks cuts ws into pieces of at most n.
func chunks(ws []*ward, n int) (out [][]*ward) {
	for len(ws) > n && n > 0 {
		out = append(out, ws[:n:n])
		ws = ws[n:]
	}
	if len(ws) > 0 {
		out = append(out, ws)
	}
	return out
}

// renew has one batch renewed and judges each proof.
func (k *keeper) renew(batch []*ward, now time.Duration) {
	claims := make([]driver.Claim, len(batch))
	info := RenewInfo{Store: k.core.facts.Driver, Margin: never}
	timeout := never
	k.mu.Lock()
	for i, w := range batch {
		claims[i] = w.claim
		if w.until == never {
			info.Places++
			timeout = min(timeout, w.claim.Patience/3)
			continue
		}
		info.Leases++
		info.Margin = min(info.Margin, w.until-now)
		timeout = min(timeout, w.claim.TTL/3)
	}
	k.mu.Unlock()

	ctx, cancel := context.WithTimeout(k.ctx, timeout)
	asked := k.core.clock.now()
	sent := k.core.sent()
	proofs, err := k.core.store.Renew(ctx, claims)
	k.core.requested("renew", sent, err)
	cancel()
	info.Took, info.Err = k.core.clock.now()-asked, err

	jitter := rand.Float64() // one for the batch: it stays together
	for i, w := range batch {
		p := driver.Proof{Err: err}
		if len(proofs) == len(batch) {
			p = proofs[i]
		}
		if p.Err == nil && len(proofs) != len(batch) {
			p.Err = errNoProof
		}
		if !driver.Certain(p.Err) {
			info.Failed++
		}
		k.settle(w, claims[i].ID, asked, p, jitter, true)
	}
	k.core.hooks.renewed(info)
}

// prove has one claim renewed on the caller's goroutine.
func (k *keeper) prove(ctx context.Context, w *ward) error {
	k.mu.Lock()
	claim := w.claim
	k.mu.Unlock()
	asked := k.core.clock.now()
	sent := k.core.sent()
	proofs, err := k.core.store.Renew(ctx, []driver.Claim{claim})
	k.core.requested("renew", sent, err)
	if len(proofs) != 1 {
		if err == nil {
			err = errNoProof
		}
		return err
	}
	k.settle(w, claim.ID, asked, proofs[0], rand.Float64(), false)
	return proofs[0].Err
}

var errNoProof = errors.New("the store gave no proof")

// settle believes, or does not, one proof of the claim with id that was asked for
// at asked (law 34). ends tells that it is the answer to the renewal that made w
// busy.
func (k *keeper) settle(w *ward, id string, asked time.Duration, p driver.Proof, jitter float64, ends bool) {
	now := k.core.clock.now()
	var tell func()
	k.mu.Lock()
	if ends {
		w.busy = false
		if w.idle != nil {
			defer close(w.idle) // the channel, read now
			w.idle = nil
		}
	}
	switch {
	case w.slot == 0:
		// Out of care meanwhile: what the store says comes too late (law 35).
	case w.until <= now:
		k.removeLocked(w)
		last := w.last
		tell = func() { w.owner.expired(now, last) }
	case w.claim.ID != id:
		k.wards.fix(w) // of a claim that was replaced meanwhile
	case w.until == never:
		k.settlePlaceLocked(w.owner.(*waiter), asked, p)
	case p.Err == nil:
		w.owner.(*Lease).believe(max(w.until, trustedUntil(asked, p.TTL)))
		w.tries, w.last = 0, nil
		w.due = asked + p.TTL/3 + time.Duration(jitter*float64(p.TTL/24))
		if w.until < w.due {
			w.due = never // capped by MaxHold: nothing left to renew for
		}
		k.wards.fix(w)
	case driver.Certain(p.Err) && k.doubtLocked(w, p.Err):
		// A conversion knows.
	case driver.Certain(p.Err):
		k.removeLocked(w)
		tell = func() { w.owner.refusedBy(p.Err) }
	default:
		k.retryLocked(w, now, p.Err)
	}
	k.mu.Unlock()
	if tell != nil {
		tell()
	}
	signal(k.wake)
}

// retryLocked schedules another try after an unclear answer: sooner, the less
// trust is left. The old deadline stands.
func (k *keeper) retryLocked(w *ward, now time.Duration, err error) {
	left := w.claim.Patience
	if w.until != never {
		left = w.until - now
	}
	w.tries++
	w.last = err
	w.due = now + max(left/6, w.claim.TTL/200, time.Millisecond)
	k.wards.fix(w)
}
