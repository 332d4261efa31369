// Package dibs gives a program one holder at a time across machines, on the
// store that it already runs.
//
// A lock in another process cannot stop this one. A process that is frozen (by
// its machine, its garbage collector, a debugger) can't be told anything, and
// wakes up believing what it believed; the only thing that closes that gap is
// the fencing token ([Lease.Fence]), checked by the resource that is written to.
// What dibs does promise: a holder that runs learns of its loss before the store
// can let anyone else in, by its own clock, also when the store hangs
// ([Lease.Context], and, exactly, [Lease.Check]).
//
//	c, err := dibs.Open(ctx, "sqlite:///var/lib/dibs/locks.db", nil)
//	...
//	err = c.Mutex("invoice-reminders").TryDo(ctx, func(ctx context.Context) error {
//		return sendReminders(ctx) // ctx ends if the lock is lost
//	})
//	if errors.Is(err, dibs.ErrHeld) {
//		return nil // another instance is at it
//	}
//
// Three contexts are never mixed: the caller's bounds the wait, the lease's the
// holding, and a detached, bounded one the cleaning up.
package dibs
