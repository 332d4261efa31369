package dibs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dibslock/dibs/driver"
)

// All locks all of ls, or none. TryLock is one step of the store if that can
// grant several names at once, so that nobody sees a part of it; elsewhere, and
// in Lock where the names aren't all free at once, it goes in the order of the
// names, whatever order ls has, holding the earlier ones: users of All can't
// deadlock each other. What was got is given back if it fails. The error names
// the one that was in the way.
//
// The same name may come more than once: an exclusive claim wins, and units of a
// semaphore add up. Its lease is lost as soon as one of them is lost; see
// [Lease.Fences]. A lock of another store, or a name both shared and counted, is
// an ErrRejected of every acquire.
func (c *Client) All(ls ...*Locker) *Locker {
	all := &Locker{client: c}
	byName := make(map[string]*Locker)
	for _, l := range ls {
		members := l.all
		if members == nil {
			members = []*Locker{l}
		}
		if all.err == nil {
			all.err = l.err
		}
		for _, m := range members {
			if m.client.core != c.core && all.err == nil {
				all.err = fmt.Errorf("dibs: %w", driver.Rejectedf(m.name, "several names at once must be locked in one store"))
			}
			merged, err := merge(byName[m.name], m)
			if err != nil && all.err == nil {
				all.err = fmt.Errorf("dibs: %w", err)
			}
			byName[m.name] = merged
		}
	}
	for _, m := range byName {
		all.all = append(all.all, m)
	}
	slices.SortFunc(all.all, func(a, b *Locker) int { return cmp.Compare(a.name, b.name) })
	names := make([]string, len(all.all))
	for i, m := range all.all {
		names[i] = m.name
	}
	all.name = strings.Join(names, " + ")
	if len(names) == 0 && all.err == nil {
		all.err = fmt.Errorf("dibs: %w", driver.Rejectedf("", "no name is to be locked"))
	}
	return all
}

// merge makes one claim of two on one name. a may be nil.
func merge(a, b *Locker) (*Locker, error) {
	if a == nil {
		return b, nil
	}
	switch ma, mb := a.mode(), b.mode(); {
	case ma == driver.Exclusive:
		return a, nil
	case mb == driver.Exclusive:
		return b, nil
	case ma != mb:
		return a, driver.Rejectedf(a.name, "both shared and counted in one lock")
	case ma == driver.Shared:
		return a, nil
	case a.capacity != b.capacity:
		return a, driver.Rejectedf(a.name, "capacities %d and %d in one lock", a.capacity, b.capacity)
	case a.units+b.units > a.capacity:
		return a, driver.Rejectedf(a.name, "%d units of %d", a.units+b.units, a.capacity)
	}
	sum := *a
	sum.units += b.units
	return &sum, nil
}

func (l *Locker) mode() driver.Mode {
	return driver.Claim{Units: l.units, Capacity: l.capacity}.Mode()
}

// acquireAll is acquire of several names.
func (l *Locker) acquireAll(ctx context.Context, wait bool) (*Lease, error) {
	if l.client.err != nil {
		return nil, l.client.err
	}
	if l.err != nil {
		return nil, l.err
	}
	for _, m := range l.all { // a bad one is told of before any of them is asked for
		if _, err := m.claim(false); err != nil {
			return nil, err
		}
	}
	lease, err := l.tryBatch(ctx, !wait)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case wait && (errors.Is(err, ErrHeld) || errors.Is(err, ErrUnknown)):
	default:
		return lease, err
	}
	return l.inTurn(ctx, wait)
}

// tryBatch asks for all names in one step of the store. final tells that a refusal
// is the end of it, of which hooks are told.
func (l *Locker) tryBatch(ctx context.Context, final bool) (*Lease, error) {
	c := l.client.core
	batcher, ok := c.store.(driver.Batcher)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	if !c.calls.enter() {
		return nil, c.error("acquire", l.name, ErrClosed)
	}
	defer c.calls.leave()
	attempts := make([]attempt, len(l.all))
	claims := make([]driver.Claim, len(l.all))
	for i, m := range l.all {
		claim, err := m.claim(false)
		if err != nil {
			return nil, err
		}
		claims[i], attempts[i] = claim, newAttempt(m.client, claim, false)
	}
	if cause := c.over(ctx); cause != nil {
		return nil, attempts[0].gaveUp(cause, nil)
	}
	call, cancel := context.WithTimeout(ctx, l.client.set.CallTimeout)
	defer cancel()
	asked := c.clock.now()
	sent := c.sent()
	grants, err := batcher.AcquireAll(call, claims)
	c.requested("acquire", sent, err)
	if err == nil && len(grants) != len(claims) {
		err = fmt.Errorf("%d grants for %d claims", len(grants), len(claims))
	}
	if err != nil && !errors.Is(err, ErrHeld) && !errors.Is(err, errors.ErrUnsupported) {
		err = c.error("acquire", l.name, err)
	}
	for i := range attempts {
		a := &attempts[i]
		if errors.Is(err, ErrUnknown) {
			a.tainted = asked
			a.takeBack()
		}
		if err != nil && final && !errors.Is(err, errors.ErrUnsupported) {
			c.hooks.acquired(c.hooks.acquiring(ctx, a.info), a.progress(), nil, err)
		}
	}
	if err != nil {
		return nil, err
	}
	g := newGroup(l)
	for i := range attempts {
		a := &attempts[i]
		lease, e := a.lease(grants[i], asked, asked+grants[i].TTL/3)
		if e != nil {
			err = a.fail(e)
			continue
		}
		c.hooks.acquired(c.hooks.acquiring(ctx, a.info), a.progress(), lease, nil)
		g.add(lease)
	}
	return g.done(ctx, err)
}

// inTurn takes one name after the other, in their order, and holds the earlier
// ones. Whoever waits, waits for a name that comes after all that it holds, so
// that no two can wait for each other.
func (l *Locker) inTurn(ctx context.Context, wait bool) (*Lease, error) {
	g := newGroup(l)
	bound, stop := g.whole.Bind(ctx) // the loss of an earlier one ends the wait
	defer stop()
	for _, m := range l.all {
		lease, err := m.acquire(bound, wait)
		if err == nil {
			g.add(lease)
			continue
		}
		if lost := g.whole.Check(); lost != nil {
			err = lost
		}
		return g.done(ctx, err)
	}
	return g.done(ctx, nil)
}
