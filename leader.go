package dibs

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/dibslock/dibs/driver"
)

// ErrNoLeader: nobody leads at the moment.
var ErrNoLeader = errors.New("no leader")

// Leading returns the lease under which this client leads, for its Fence and
// Check; ok is false if it doesn't, also when its fn is still busy with stopping.
func (e *Election) Leading() (l *Lease, ok bool) {
	for _, r := range e.client.core.reigns.of(e.name) {
		if r.lease.Check() == nil {
			return r.lease, true
		}
	}
	return nil, false
}

// Leader tells who leads: this client by what it knows itself, and any other as
// the store lists it, which may be a TTL late about one that died. ErrNoLeader if
// there is none; a leader that knows of its own loss is none. An
// [errors.ErrUnsupported] if this client doesn't lead and the store can't tell.
func (e *Election) Leader(ctx context.Context) (Holder, error) {
	if l, ok := e.Leading(); ok {
		c := l.snapshot()
		return Holder{
			Name: e.name, State: driver.Held, Token: l.Token(), Fence: l.Fence(), Units: c.Units, Capacity: c.Capacity,
			Age: l.held(), Left: l.Remaining(), TTL: c.TTL, Note: c.Note,
		}, nil
	}
	for h, err := range e.client.Holders(ctx, e.name) {
		if err != nil {
			return Holder{}, err
		}
		if h.Name != e.name { // they are ordered by name: it is listed first, or not at all
			break
		}
		if h.State == driver.Held && h.Mode() == driver.Exclusive && !e.lost(h.Token) {
			return h, nil
		}
	}
	return Holder{}, fmt.Errorf("dibs: %q: %w", e.name, ErrNoLeader)
}

// lost tells whether token is that of a leadership of this client, which leads no
// more: the store may not know that yet.
func (e *Election) lost(token uint64) bool {
	rs := &e.client.core.reigns
	for _, r := range rs.of(e.name) {
		if r.lease.Token() == token {
			return true
		}
	}
	return rs.over(e.name, token)
}

// Observe yields who leads, and then every change of it that it sees, a zero
// Holder for nobody. It asks as often as Settings.Poll says, so that it may miss
// a leadership that is shorter. A store that gives no clear answer is yielded as
// an error once, and then asked on; an error that asking again can't mend, or the
// end of ctx or of the client, ends it.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Holder, error] {
	return func(yield func(Holder, error) bool) {
		c := e.client.core
		var last uint64
		told, failing := false, false
		for {
			h, err := e.Leader(ctx)
			cause := c.over(ctx)
			switch {
			case cause != nil:
				yield(Holder{}, cause)
				return
			case err != nil && !errors.Is(err, ErrNoLeader):
				if !failing && !yield(Holder{}, err) || !errors.Is(err, ErrUnknown) {
					return
				}
				failing = true
			case !told || failing || h.Token != last:
				told, failing, last = true, false, h.Token
				if !yield(h, nil) {
					return
				}
			}
			c.pause(ctx, e.client.set.Poll)
		}
	}
}

// StepDown ends this client's leadership, if it leads: fn's ctx ends with
// ErrSteppedDown, fn is awaited, and the lock is given back. Lead campaigns again
// a little later, behind those who waited. The error is that ctx ended first; fn
// is then still stopping.
func (e *Election) StepDown(ctx context.Context) error {
	for _, r := range e.client.core.reigns.of(e.name) {
		r.end(ErrSteppedDown)
		select {
		case <-r.over:
		case <-ctx.Done():
			return fmt.Errorf("dibs: %q: stepping down, and the leader is still at it: %w", e.name, context.Cause(ctx))
		}
	}
	return nil
}
