package dibs

import (
	"context"
	"errors"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Release gives the lease back. It stops the renewal, waits for one in flight,
// and then asks the store; it works with a ctx that has already ended. An end of
// ctx meanwhile, or a store that gives no clear answer, is an ErrUnknown: the
// claim is then given back in the background until it has ended by its TTL.
//
// nil: released. ErrNotHeld: the store says that it was not ours any more.
// ErrLost: the lease had been lost before; if the claim still stood, it is given
// back all the same, so call Release after the work has stopped. ErrReleased:
// somebody called it before; that call's answer is awaited.
func (l *Lease) Release(ctx context.Context) error { return l.release(ctx, true) }

// Forgo is Release for a lease under which nothing was done: the name is free at
// once, whatever Settings.Keep says.
func (l *Lease) Forgo(ctx context.Context) error { return l.release(ctx, false) }

func (l *Lease) release(ctx context.Context, keep bool) error {
	lost := l.Check()
	l.mu.Lock()
	if l.freed != nil {
		freed := l.freed
		l.mu.Unlock()
		<-freed
		return ErrReleased
	}
	l.freed = make(chan struct{})
	l.mu.Unlock()
	defer close(l.freed)

	if !l.core.calls.enter() {
		<-l.core.closed // Close gives it back
		return l.Check()
	}
	defer l.core.calls.leave()
	if lost == nil && !l.end(ErrReleased) {
		lost = l.Check() // it was lost just now
	}
	err := l.giveBack(ctx, keep)
	if lost != nil {
		err = lost
	}
	l.core.hooks.released(l, err)
	return err
}

// giveBack stops the renewal and asks the store.
func (l *Lease) giveBack(ctx context.Context, keep bool) error {
	c, claim := l.core, l.claim
	if !keep {
		claim.Keep = 0 // it frees now (law 18)
	}
	ctx = detached(ctx)
	if err := c.keeper.drop(ctx, l.client.set.CallTimeout, &l.ward); err != nil {
		c.undoer.add(claim, l.tainted)
		return c.error("release", l.Name(), err)
	}
	err := c.release(ctx, claim, l.client.set.CallTimeout, time.Duration(l.trust.Load()))
	if !driver.Certain(err) {
		c.undoer.add(claim, l.tainted)
		return c.error("release", l.Name(), err)
	}
	c.undoer.addLate(l.claim, l.tainted)
	if err != nil && !errors.Is(err, ErrNotHeld) {
		return c.error("release", l.Name(), err)
	}
	return err
}

// release asks the store to free claim until the answer is clear, ctx ends, or
// timeout is over, of which one call gets a half. An ErrNotHeld after an own
// unclear answer within trust means that that one was applied (law 39).
func (c *core) release(ctx context.Context, claim driver.Claim, timeout, trusted time.Duration) error {
	began := c.clock.now()
	for try := 0; ; try++ {
		call, cancel := context.WithTimeout(ctx, timeout/2)
		err := c.store.Release(call, claim)
		cancel()
		switch {
		case errors.Is(err, ErrNotHeld) && try > 0 && c.clock.now() < trusted:
			return nil
		case driver.Certain(err), errors.Is(err, ErrClosed):
			return err
		}
		if c.clock.now()-began >= timeout || !sleep(ctx, backoff(try, 10*time.Millisecond, time.Second)) {
			return err
		}
	}
}
