package dibs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Convert makes the lease one of to's kind, in one step of the store in which
// nobody else gets in: from reader to writer and back, or to more or fewer units
// of a semaphore. The lease stays itself, with its contexts, and has a new Token
// and Fence. to is a Locker of the same name and client, or a sibling's.
//
// To shrink (fewer units of the same capacity, from exclusive to anything) always
// succeeds. To grow succeeds at once or is refused, and nothing has changed: with
// ErrHeld if others are in the way, and with ErrDeadlock if another waits to grow.
// It never waits, because two readers that both wait to write would wait for each
// other: Release and Lock again to wait, and look again at what was read.
//
// An answer that is not clear is asked for again until ctx ends, and for one TTL at
// the most; then Convert returns an ErrUnknown, and the lease may be of either
// kind, so that its holder may only do what both allow. It is lost if the store
// refuses both. ErrLost and ErrReleased: it had ended. Stores that can't convert,
// and what makes no sense (another name, a lock of several names), are an
// [errors.ErrUnsupported] and an ErrRejected before any I/O.
func (l *Lease) Convert(ctx context.Context, to *Locker) error {
	claim, err := l.converted(to)
	if err != nil {
		return err
	}
	c := l.core
	if !c.calls.enter() {
		return c.error("convert", l.Name(), ErrClosed)
	}
	defer c.calls.leave()
	v := &conversion{lease: l, client: to.client, wake: make(chan struct{}, 1)}
	if err := c.keeper.begin(v, claim); err != nil {
		return err
	}
	bound, stop := l.Bind(ctx) // the end of the lease ends it too
	defer stop()
	err = v.ask(bound)
	if err == nil {
		return nil
	}
	if lost := l.Check(); lost != nil {
		c.undoer.add(v.claim, v.tainted)
		return lost
	}
	if v.tainted == 0 {
		c.keeper.finish(v)
	} else if c.calls.enter() {
		go v.linger() // ends when no request can land any more, or with the lease or the client
	}
	return err
}

// Upgrade is Convert to a writer, Downgrade to a reader.
func (l *Lease) Upgrade(ctx context.Context) error { return l.Convert(ctx, l.client.Writer(l.Name())) }

// Downgrade is Convert to a reader.
func (l *Lease) Downgrade(ctx context.Context) error {
	return l.Convert(ctx, l.client.Reader(l.Name()))
}

// converted returns the claim that is to replace l's.
func (l *Lease) converted(to *Locker) (driver.Claim, error) {
	bad := func(format string, args ...any) (driver.Claim, error) {
		return driver.Claim{}, fmt.Errorf("dibs: convert: %w", driver.Rejectedf(l.Name(), format, args...))
	}
	switch why := l.core.facts.Waived(21); {
	case l.stands() != nil || to.all != nil:
		return bad("several names can't be converted at once")
	case to.name != l.Name():
		return bad("it can't become a lock of %q", to.name)
	case to.client.core != l.core:
		return bad("the other lock is of another client")
	case why != "":
		return driver.Claim{}, fmt.Errorf("dibs: convert %q: %w", l.Name(), driver.Unsupportedf("%s can't convert: %s", l.core.facts.Driver, why))
	}
	return to.claim(false)
}

// A conversion replaces the claim of a lease by another. From the first ask on,
// until the answer is certain or no ask can land any more, either of the two may
// be the one that stands: see law 21.
type conversion struct {
	lease   *Lease
	client  *Client // of the new kind
	claim   driver.Claim
	tainted time.Duration // when an ask was last sent without a clear answer; 0: never
	wake    chan struct{} // capacity 1: refused was set

	refused error // the old claim is gone, says the store; guarded by the keeper's lock
}

// begin notes that v is under way, to make claim of its lease's.
func (k *keeper) begin(v *conversion, claim driver.Claim) error {
	l := v.lease
	if err := l.Check(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.conv != nil {
		return fmt.Errorf("dibs: convert: %w", driver.Rejectedf(l.Name(), "another conversion is under way, or may still be"))
	}
	claim.From = l.claim.ID
	claim.TTL = max(claim.TTL, l.claim.TTL) // so that it outlives what is trusted already
	v.claim, l.conv = claim, v
	return nil
}

// finish notes that v is certainly over.
func (k *keeper) finish(v *conversion) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v.lease.conv = nil
}

// pending returns the claim that may have replaced that of l, if there is one.
func (k *keeper) pending(l *Lease) (claim driver.Claim, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.conv == nil {
		return claim, false
	}
	return l.conv.claim, true
}

// doubtLocked tells whether a refusal of w's claim does not yet mean its loss: a
// conversion may have replaced it, and what the store says of that one decides.
// k.mu is held. Trust is what it was.
func (k *keeper) doubtLocked(w *ward, err error) bool {
	l, ok := w.owner.(*Lease)
	if !ok || l.conv == nil || errors.Is(err, ErrRevoked) {
		return false
	}
	l.conv.refused = err
	w.due = never
	k.wards.fix(w)
	signal(l.conv.wake)
	return true
}

// replace makes v's claim, granted as g when asked for at asked, that of the
// lease. It tells false if the lease has ended, or the grant is too late.
func (k *keeper) replace(v *conversion, g driver.Grant, asked time.Duration) bool {
	l, until := v.lease, trustedUntil(asked, g.TTL)
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.slot == 0 || until <= k.core.clock.now() {
		return false
	}
	old, late := l.claim, l.tainted
	if k.byID != nil {
		delete(k.byID, old.ID)
		k.byID[v.claim.ID] = &l.ward
	}
	// Not the name, which is read without the lock.
	l.claim.ID, l.claim.Token, l.claim.Units, l.claim.Capacity = v.claim.ID, g.Token, v.claim.Units, v.claim.Capacity
	l.claim.TTL, l.claim.Keep, l.claim.Delay, l.claim.Note = v.claim.TTL, v.claim.Keep, v.claim.Delay, v.claim.Note
	l.tainted, l.conv = v.tainted, nil
	l.believe(until)
	l.tries, l.last, l.due = 0, nil, asked+g.TTL/3
	k.wards.fix(&l.ward)
	l.mu.Lock()
	g.TookOver = g.TookOver || l.grant.TookOver
	l.grant = g
	l.mu.Unlock()
	k.core.undoer.addLate(old, late)
	signal(k.wake)
	return true
}

// ask asks until the answer is certain, or ctx or the client ends, or the store
// has been silent for a TTL.
func (v *conversion) ask(ctx context.Context) error {
	l, set := v.lease, v.client.set
	c := l.core
	began := c.clock.now()
	var last error
	for try := 0; ; try++ {
		if cause := c.over(ctx); cause != nil {
			return &WaitError{Name: l.Name(), Waited: c.clock.now() - began, Cause: cause, Last: last}
		}
		call := c.minder.Begin(ctx, set.CallTimeout)
		asked := c.clock.now()
		sent := c.sent()
		g, err := c.store.Acquire(call, v.claim)
		c.requested("acquire", sent, err)
		call.End()
		if settled, err := v.settle(g, asked, err); settled {
			return err
		}
		v.tainted, last = asked, c.error("convert", l.Name(), err)
		if silent := c.clock.now() - began; set.StoreDown == FailDown && silent >= v.claim.TTL {
			return last
		}
		v.pause(ctx, backoff(try, 10*time.Millisecond, time.Second))
	}
}

// settle judges the answer to an ask for the new claim. It is settled if it is
// certain.
func (v *conversion) settle(g driver.Grant, asked time.Duration, err error) (settled bool, _ error) {
	l, c := v.lease, v.lease.core
	var held *HeldError
	switch {
	case err == nil && c.keeper.replace(v, g, asked):
		return true, nil
	case err == nil:
		// The old claim has ended with the grant, and the new one is of no use.
		c.keeper.dismiss(&l.ward)
		l.end(&LostError{Reason: Expired, Err: errLate})
		return true, l.Check()
	case errors.Is(err, ErrNotHeld): // neither of the two is there
		c.keeper.dismiss(&l.ward)
		l.refusedBy(err)
		return true, l.Check()
	case errors.As(err, &held) && held.Deadlock:
		return true, &DeadlockError{Name: l.Name(), Refusal: held}
	case errors.Is(err, ErrHeld):
		return true, err
	case driver.Certain(err), errors.Is(err, ErrClosed):
		return true, c.error("convert", l.Name(), err)
	}
	return false, err
}

// pause waits for d, or until the store has refused the old claim: then asking
// again tells what became of the new one.
func (v *conversion) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-v.wake:
	case <-ctx.Done():
	case <-v.lease.core.closing:
	}
}

// linger stays until no ask can land any more (law 38), and looks after the new
// claim if the old one is refused meanwhile.
func (v *conversion) linger() {
	l, c := v.lease, v.lease.core
	defer c.calls.leave()
	ctx, stop := l.Bind(context.Background())
	defer stop()
	for try := 0; c.over(ctx) == nil; try++ {
		c.keeper.mu.Lock()
		refused := v.refused
		c.keeper.mu.Unlock()
		left := v.tainted + v.claim.TTL - c.clock.now()
		switch {
		case refused == nil && left <= 0:
			c.keeper.finish(v)
			return
		case refused == nil:
			v.pause(ctx, left)
		case v.prove(ctx, refused):
			if l.Check() != nil {
				c.undoer.add(v.claim, v.tainted)
			}
			return
		default:
			v.pause(ctx, backoff(try, 10*time.Millisecond, time.Second))
		}
	}
	if l.Check() != nil { // Close takes back what is left of a client's leases
		c.undoer.add(v.claim, v.tainted)
	}
}

// prove asks whether the new claim stands, now that the old one was refused. It
// tells false if that got no clear answer.
func (v *conversion) prove(ctx context.Context, refused error) bool {
	c := v.lease.core
	call := c.minder.Begin(ctx, v.client.set.CallTimeout)
	defer call.End()
	asked := c.clock.now()
	sent := c.sent()
	proofs, err := c.store.Renew(call, []driver.Claim{v.claim}) // without a token: by its ID alone
	c.requested("renew", sent, err)
	if len(proofs) != 1 {
		return false
	}
	p := proofs[0]
	switch {
	case p.Err == nil && p.Grant != nil:
		g := *p.Grant
		g.TTL = p.TTL
		_, _ = v.settle(g, asked, nil)
		return true
	case driver.Certain(p.Err) && p.Err != nil:
		_, _ = v.settle(driver.Grant{}, asked, refused)
		return true
	}
	return false
}
