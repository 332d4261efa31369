package dibs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

// acquire is the way of every Lock and TryLock: ask, and if refused wait (see
// waiter), until there is a lease or an error.
func (l *Locker) acquire(ctx context.Context, wait bool) (lease *Lease, err error) {
	if l.all != nil {
		return l.acquireAll(ctx, wait)
	}
	c := l.client.core
	claim, err := l.claim(wait)
	if err != nil {
		return nil, err
	}
	if !c.calls.enter() {
		return nil, c.error("acquire", l.name, ErrClosed)
	}
	defer c.calls.leave()

	a := newAttempt(l.client, claim, wait)
	if wait && c.carried(ctx, l.name) {
		a.nested, a.claim.Patience = true, 0 // it may not wait
	}
	ctx = c.hooks.acquiring(ctx, a.info)
	if wait {
		lease, err = a.wait(ctx)
	} else {
		lease, err = a.try(ctx)
	}
	if c.hooks.Acquired != nil { // a look at the clock costs about as much as all of this
		c.hooks.acquired(ctx, a.progress(), lease, err)
	}
	return lease, err
}

// An attempt is one Lock or TryLock under way. Instants are the clock's.
type attempt struct {
	client  *Client
	claim   driver.Claim // all its asks carry the same ID
	info    AcquireInfo
	began   time.Duration
	asked   time.Duration // when the last ask was sent; 0: never
	clear   time.Duration // when the store last gave a clear answer
	tainted time.Duration // when an ask was last sent without getting one; 0: never
	nested  bool          // its ctx holds the name already: see DeadlockError
}

func newAttempt(client *Client, claim driver.Claim, wait bool) attempt {
	now := client.core.clock.before()
	return attempt{
		client: client,
		claim:  claim,
		info:   AcquireInfo{Name: claim.Name, Store: client.core.facts.Driver, Mode: claim.Mode().String(), Wait: wait},
		began:  now,
		clear:  now,
	}
}

// errLate says that a grant came with no trust left.
var errLate = errors.New("the grant came too late to be trusted")

// ask asks once. The answer is a lease, a *HeldError, another certain error, or
// an unclear one, which taints the attempt.
func (a *attempt) ask(ctx context.Context) (*Lease, error) {
	c := a.client.core
	call := c.minder.Begin(ctx, a.client.set.CallTimeout)
	defer call.End()
	first := a.asked == 0
	if first {
		a.asked = a.began // just now, or before a hook, and then earlier is safer
	} else {
		a.asked = c.clock.now()
	}
	sent := c.sent()
	g, err := c.store.Acquire(call, a.claim)
	c.requested("acquire", sent, err)
	switch {
	case err == nil:
		if first {
			c.crowd.met(a.claim.Name, false)
		}
		return a.lease(g, a.asked, a.asked+g.TTL/3)
	case driver.Certain(err):
		a.clear = c.clock.now()
		if errors.Is(err, ErrHeld) {
			c.crowd.met(a.claim.Name, true)
		}
	default:
		a.tainted = a.asked
	}
	return nil, err
}

// lease makes a lease of a grant that was asked for at asked, and has it renewed
// at due. A grant without trust left is given back (law 36).
func (a *attempt) lease(g driver.Grant, asked, due time.Duration) (*Lease, error) {
	c := a.client.core
	l := a.client.newLease(a.claim, g, asked, a.tainted)
	switch {
	case c.clock.now() >= time.Duration(l.trust.Load()):
		a.takeBack()
		return nil, errLate
	case !c.keeper.adopt(&l.ward, due):
		a.takeBack()
		return nil, ErrClosed
	}
	return l, nil
}

// takeBack gives up whatever the attempt may have in the store, in the
// background and detached from the caller.
func (a *attempt) takeBack() {
	claim := a.claim
	claim.Keep = 0 // nobody has worked under it: it frees now (law 18)
	a.client.core.undoer.add(claim, a.tainted)
}

// try asks once.
func (a *attempt) try(ctx context.Context) (*Lease, error) {
	if cause := a.over(ctx); cause != nil {
		return nil, a.gaveUp(cause, nil)
	}
	lease, err := a.ask(ctx)
	switch {
	case err == nil:
		return lease, nil
	case errors.Is(err, ErrHeld):
		return nil, err
	case !driver.Certain(err) && !errors.Is(err, errLate):
		a.takeBack()
	}
	return nil, a.fail(err)
}

// over tells why there is no point in asking any more, or nil.
func (a *attempt) over(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.client.core.closing:
		return ErrClosed
	default:
		return nil
	}
}

// fail wraps an error that is not a refusal.
func (a *attempt) fail(err error) error {
	return a.client.core.error("acquire", a.claim.Name, err)
}

// gaveUp is the error of a wait that ended for cause.
func (a *attempt) gaveUp(cause, last error) error {
	waited := a.client.core.clock.now() - a.began
	return &WaitError{Name: a.claim.Name, Waited: waited, Cause: cause, Last: last}
}

// down is the error of a wait during which the store gave no clear answer.
func (a *attempt) down(err error) error {
	silent := a.client.core.clock.now() - a.clear
	return a.fail(fmt.Errorf("no clear answer for %v: %w", silent.Round(time.Millisecond), err))
}
