package dibs

import (
	"context"
	"errors"
	"fmt"
)

// ErrDeadlock: to wait would be to wait for oneself. See *DeadlockError.
var ErrDeadlock = errors.New("deadlock")

// A DeadlockError says that a wait could not end: the ctx of the Lock holds the
// name already, and whoever is in the way may in turn be waiting for that; or two
// holders want to grow at the same time. Nothing was taken and nothing was lost.
// It is an ErrDeadlock, and no ErrHeld: to skip the work would be wrong.
type DeadlockError struct {
	Name    string
	Refusal *HeldError // the store's
}

// Error says what to do.
func (e *DeadlockError) Error() string {
	if e.Refusal.Deadlock {
		return fmt.Sprintf("%v; one of the two must let go first", e.Refusal)
	}
	return fmt.Sprintf("this very ctx holds %q, and would wait for itself (%v); pass the lease along, or take all that is needed at once", e.Name, e.Refusal)
}

// Is makes it an ErrDeadlock.
func (e *DeadlockError) Is(target error) bool { return target == ErrDeadlock }

// leases are those that a ctx carries, the innermost first.
type leases struct {
	lease *Lease
	outer *leases
}

type leasesKey struct{}

// carry returns a copy of ctx that carries l too.
func carry(ctx context.Context, l *Lease) context.Context {
	outer, _ := ctx.Value(leasesKey{}).(*leases)
	return context.WithValue(ctx, leasesKey{}, &leases{l, outer})
}

// FromContext returns the lease under which a func runs that Do or TryDo of a
// Locker was given, for its Fence and Check: the innermost, if they are nested,
// and the one that was bound, for a ctx from [Lease.Bind]. ok is false if there
// is none.
func FromContext(ctx context.Context) (l *Lease, ok bool) {
	all, ok := ctx.Value(leasesKey{}).(*leases)
	if !ok {
		return nil, false
	}
	return all.lease, true
}

// carried tells whether ctx carries a living lease on name in the same store. A
// Lock through such a ctx may be granted, such as a second reader, but must not
// wait: whoever is in the way, be it a writer in line before it, may itself wait
// for the lease that ctx carries. Only what was passed by ctx is found: a lease
// that the caller took by Lock and didn't bind, or a goroutine that was given
// another ctx, is not.
func (c *core) carried(ctx context.Context, name string) bool {
	all, _ := ctx.Value(leasesKey{}).(*leases)
	for ; all != nil; all = all.outer {
		l := all.lease
		if l.core != c {
			continue
		}
		if g := l.stands(); g != nil {
			for _, p := range g.of() {
				if p.Name() == name && p.Check() == nil {
					return true
				}
			}
		} else if l.Name() == name && l.Check() == nil {
			return true
		}
	}
	return false
}
