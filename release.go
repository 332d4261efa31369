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
// nil: released. ErrNotHeld: the store says that it was not ours any more; also if
// the machine was suspended for longer than the trust and resumed just now.
// ErrLost: the lease had been lost before; if the claim still stood, it is given
// back all the same, so call Release after the work has stopped. ErrReleased:
// somebody called it before; that call's answer is awaited.
func (l *Lease) Release(ctx context.Context) error { return l.release(ctx, true) }

// Forgo is Release for a lease under which nothing was done: the name is free at
// once, whatever Settings.Keep says.
func (l *Lease) Forgo(ctx context.Context) error { return l.release(ctx, false) }

func (l *Lease) release(ctx context.Context, keep bool) error {
	if g := l.stands(); g != nil {
		return g.release(ctx, keep)
	}
	// The store is asked in any case, and tells if another was let in: so this is no
	// moment for a system call, which would notice a suspension of just now.
	lost := l.check(l.core.clock.before())
	if freed := l.releasing(); freed != nil {
		<-freed
		return ErrReleased
	}
	defer l.released()

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

// releasing notes that a Release has begun. It returns a channel that is closed
// when an earlier one has its answer, if there is one.
func (l *Lease) releasing() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freeing && l.freed == nil {
		l.freed = make(chan struct{}) // hardly any lease is released twice
	}
	l.freeing = true
	return l.freed
}

// released notes that the first Release has its answer.
func (l *Lease) released() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.freed == nil {
		l.freed = closed
	} else {
		close(l.freed)
	}
}

var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// giveBack stops the renewal and asks the store.
func (l *Lease) giveBack(ctx context.Context, keep bool) error {
	c := l.core
	ctx = detached(ctx)
	err := c.keeper.drop(ctx, l.client.set.CallTimeout, &l.ward)
	claim := l.claim // out of care: nobody replaces it any more
	if !keep {
		claim.Keep = 0 // it frees now (law 18)
	}
	if other, ok := c.keeper.pending(l); ok { // either of the two may be there
		c.undoer.add(other, c.clock.now())
	}
	if err != nil {
		c.undoer.add(claim, l.tainted)
		return c.error("release", l.Name(), err)
	}
	err = c.release(ctx, claim, l.client.set.CallTimeout, time.Duration(l.trust.Load()))
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
	began := time.Now() // how long to go on is no matter of trust
	for try := 0; ; try++ {
		call := c.minder.Begin(ctx, timeout/2)
		sent := c.sent()
		err := c.store.Release(call, claim)
		c.requested("release", sent, err)
		call.End()
		switch {
		case errors.Is(err, ErrNotHeld) && try > 0 && c.clock.now() < trusted:
			return nil
		case driver.Certain(err), errors.Is(err, ErrClosed):
			return err
		}
		if time.Since(began) >= timeout || !sleep(ctx, backoff(try, 10*time.Millisecond, time.Second)) {
			return err
		}
	}
}
