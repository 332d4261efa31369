package dibs

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A Lease is a claim held: from a Lock or TryLock until Release, or until it is
// lost. It is renewed in the background. All methods may be called from any
// goroutine, also after its end.
type Lease struct {
	ward                // in the keeper's care
	core    *core       //
	client  *Client     // whose settings it was asked with
	conv    *conversion // that may have replaced its claim; nil: none. Guarded by the keeper's lock
	grant   driver.Grant
	born    time.Duration // when the grant was asked for
	tainted time.Duration // when an ask of this attempt was last sent without a clear answer; 0: never
	trust   atomic.Int64  // trusted until then, by the clock; the keeper's own copy is ward.until

	mu      sync.Mutex // guards what follows
	group   *group     // the leases taken together with it, or that it stands for; nil: none
	cause   error      // why it ended; nil while it lives
	ctx     context.Context
	cancel  context.CancelCauseFunc
	bound   map[*context.CancelCauseFunc]struct{} // of the contexts from Bind
	freeing bool                                  // Release has begun
	freed   chan struct{}                         // closed when it has its answer; nil: nobody wants to know yet
}

// newLease makes a lease of a grant that was asked for at asked.
func (c *Client) newLease(claim driver.Claim, g driver.Grant, asked, tainted time.Duration) *Lease {
	claim.Token = g.Token
	l := &Lease{core: c.core, client: c, grant: g, born: asked, tainted: tainted}
	l.ward.claim, l.ward.owner = claim, l
	l.believe(trustedUntil(asked, g.TTL))
	return l
}

// believe sets the end of trust, which MaxHold caps. The keeper's lock is held,
// or the lease isn't shared yet.
func (l *Lease) believe(until time.Duration) {
	if hold := l.client.set.MaxHold; hold > 0 {
		until = min(until, l.born+hold)
	}
	l.until = until
	l.trust.Store(int64(until))
}

// Name returns what is locked.
func (l *Lease) Name() string { return l.claim.Name }

// Fence returns the fencing token, which grows with every grant on the name: a
// resource that refuses any smaller than the largest that it has seen (on reads
// too) can't be changed by a holder that lost its lock. 0: there is nothing to
// fence with (counted claims, stores without tokens).
func (l *Lease) Fence() uint64 { return l.granted().Fence }

// Token identifies the grant, for Revoke and for records.
func (l *Lease) Token() uint64 { return l.granted().Token }

// TookOver tells that a holder before this one expired or died: its work may be
// half done.
func (l *Lease) TookOver() bool { return l.granted().TookOver }

// granted returns the grant, which Convert replaces.
func (l *Lease) granted() driver.Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grant
}

// Check returns nil while the lease may be trusted right now, by the clock and
// without I/O: call it before a step that cannot be undone. It is exact: after a
// pause longer than the trust, its first answer is a *LostError, even if the
// context has not ended yet. After Release it is ErrReleased.
func (l *Lease) Check() error { return l.check(l.core.clock.now()) }

// check is Check as of now.
func (l *Lease) check(now time.Duration) error {
	if now >= time.Duration(l.trust.Load()) {
		l.core.keeper.expire(l, now)
	}
	l.mu.Lock()
	cause, g := l.cause, l.group
	l.mu.Unlock()
	if cause == nil && g != nil && g.whole == l {
		return g.check()
	}
	return cause
}

// Remaining returns how long the lease can be trusted if no renewal succeeds; 0
// after its end.
func (l *Lease) Remaining() time.Duration {
	if l.Check() != nil {
		return 0
	}
	if g := l.stands(); g != nil {
		return g.remaining()
	}
	return max(0, time.Duration(l.trust.Load())-l.core.clock.now())
}

// Validate asks the store whether this is still the newest grant, and extends it
// if so. A refusal ends the lease and is its *LostError; an unclear answer is an
// ErrUnknown and changes nothing; so does an end of ctx.
func (l *Lease) Validate(ctx context.Context) error {
	if err := l.Check(); err != nil {
		return err
	}
	if g := l.stands(); g != nil {
		return g.validate(ctx)
	}
	call := l.core.minder.Begin(ctx, l.client.set.CallTimeout)
	defer call.End()
	if err := l.core.keeper.prove(call, &l.ward); err != nil {
		if lost := l.Check(); lost != nil {
			return lost
		}
		return l.core.error("validate", l.Name(), err)
	}
	return l.Check()
}

// Context ends when the lease can no longer be trusted; [context.Cause] says
// why: a *LostError, or ErrReleased. It carries no values and no deadline; see
// Bind.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx == nil {
		// Made when it is first asked for: most of ten thousand leases never are.
		l.ctx, l.cancel = context.WithCancelCause(context.Background())
		if l.cause != nil {
			l.cancel(l.cause)
		}
	}
	return l.ctx
}

// Bind returns a copy of parent that ends with the lease too, with the lease's
// cause, and that carries the lease: see FromContext. stop frees what it takes.
func (l *Lease) Bind(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(carry(parent, l))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		cancel(l.cause)
		return ctx, func() { cancel(nil) }
	}
	if l.bound == nil {
		l.bound = make(map[*context.CancelCauseFunc]struct{})
	}
	l.bound[&cancel] = struct{}{}
	return ctx, func() {
		l.mu.Lock()
		delete(l.bound, &cancel)
		l.mu.Unlock()
		cancel(nil)
	}
}

// end ends the lease for cause, once; it tells whether this call did. A
// *LostError gets its particulars here.
func (l *Lease) end(cause error) bool {
	lost, isLost := cause.(*LostError)
	whole := l.stands() != nil
	if isLost && !whole {
		lost.Name, lost.Fence = l.Name(), l.Fence()
		lost.Held = l.core.clock.now() - l.born
	}
	l.mu.Lock()
	if l.cause != nil {
		l.mu.Unlock()
		return false
	}
	l.cause = cause
	cancel, bound, g := l.cancel, l.bound, l.group
	l.bound = nil
	l.mu.Unlock()

	if cancel != nil {
		cancel(cause)
	}
	for stop := range bound {
		(*stop)(cause)
	}
	if isLost && !whole {
		l.core.hooks.lost(l, lost)
		if g != nil {
			g.lost(lost)
		}
	}
	return true
}

// expired ends the lease because its trust has run out (law 32).
func (l *Lease) expired(now time.Duration, last error) {
	reason := Expired
	if hold := l.client.set.MaxHold; hold > 0 && now >= l.born+hold {
		reason, last = OverMaxHold, nil
	}
	l.end(&LostError{Reason: reason, Err: last})
}

// refusedBy ends the lease because the store said so (law 34).
func (l *Lease) refusedBy(err error) {
	reason := Taken
	if errors.Is(err, ErrRevoked) {
		reason = RevokedAway
	}
	l.end(&LostError{Reason: reason, Err: err})
	if errors.Is(err, ErrHeld) {
		// It has become a place in line, which nobody waits in.
		l.core.undoer.add(l.claim, 0)
	}
}
