package dibs

import (
	"context"
	"fmt"
	"time"

	"github.com/dibslock/dibs/driver"
)

const (
	// MaxResult is the longest result that a Once keeps, in bytes.
	MaxResult = 64 << 10
	// MaxRequest is the longest Request of OnceOptions, in bytes.
	MaxRequest = 256
	// pendingLonger is how much longer than keep an unfinished run is
	// remembered: a run may well take longer than its result is of use.
	pendingLonger = 24 * time.Hour
)

// A Once does something once per key, whatever happens to the process that does
// it, for everybody who asks the store under that key. It is safe for concurrent
// use and holds nothing.
//
// A run takes the lock "once/key", writes that it is pending, with its lock's
// token, works, and writes that it is done. Whoever holds the lock later and
// finds "pending" under an older token has proof, and no guess by a clock, that
// the run before it has lost the lock: it ended without a word. Its work may be
// there all the same, and if it is merely frozen it may still act. So a run is
// exactly once only in what can be told apart: what the resource fences (see
// [Run]), or does in one transaction with a guard of its own.
type Once struct {
	book
	keep    time.Duration
	options OnceOptions
	lock    *Locker
}

// OnceOptions say more about a Once. The zero value means the defaults.
type OnceOptions struct {
	// Request is a hash, or another short name, of what is asked for under the
	// key. If it is another than the one remembered, nothing runs: see
	// *MismatchError. "": it isn't looked at.
	Request string
	// Interrupted says what is done about a run that ended without a word.
	Interrupted Interrupted
	// Lease is an exclusive lease of the same store under which to run, rather
	// than under a lock of the key's own. All who run one key must do so under
	// one name.
	Lease *Lease
}

// Interrupted says what a Once does about a run that ended without a word.
type Interrupted string

// The choices.
const (
	Rerun  Interrupted = ""     // run again; Run.Again says so
	Refuse Interrupted = "fail" // an *InterruptedError, until somebody calls Forget
)

// Once does something once on key, and remembers for keep that it was done. A bad
// key, or a store without records or without tokens, is the error of every use,
// before any I/O.
func (c *Client) Once(key string, keep time.Duration) *Once {
	o := &Once{book: c.book("once", key), keep: keep}
	// A lock kept for long would only be in the way of those who come for the result.
	o.lock = c.With(Settings{Keep: Off}).Mutex(o.key())
	switch {
	case o.err != nil:
	case keep <= 0 || keep > longest:
		o.err = o.rejected("kept for %v: it must be positive, and at most %v", keep, longest)
	case c.core.facts.Fencing == driver.NoFencing:
		o.err = fmt.Errorf("dibs: once %q: %w", key, driver.Unsupportedf("%s has no tokens, which prove that a run has ended", c.core.facts.Driver))
	}
	return o
}

// With returns a Once on the same key that has options.
func (o *Once) With(options OnceOptions) *Once {
	with := *o
	with.options = options
	switch l := options.Lease; {
	case with.err != nil:
	case len(options.Request) > MaxRequest:
		with.err = o.rejected("the request's name is %d bytes long; at most %d are allowed", len(options.Request), MaxRequest)
	case options.Interrupted != Rerun && options.Interrupted != Refuse:
		with.err = o.rejected("interrupted %q: want %q or %q", options.Interrupted, Rerun, Refuse)
	case l != nil && l.core != o.client.core:
		with.err = o.rejected("the lease on %q is of another client", l.Name())
	case l != nil && l.snapshot().Mode() != driver.Exclusive:
		with.err = o.rejected("the lease on %q is %s; an exclusive one is needed", l.Name(), l.snapshot().Mode())
	}
	return &with
}

// Do runs fn unless it was done before, and tells whether it ran. If another runs
// it, Do waits for that one first; ctx bounds the wait, and fn's ctx ends if the
// lock is lost, as in [Locker.Do].
//
// fn's error is returned, and then nothing is remembered: the next one runs again.
// If fn panics, or its lock was lost and it failed, it counts as interrupted. nil
// means done; if that can't be written down, because the store is silent or
// another has taken over meanwhile, the error says so, and ran is true.
func (o *Once) Do(ctx context.Context, fn func(ctx context.Context) error) (ran bool, err error) {
	return o.plain(ctx, true, fn)
}

// TryDo is Do without waiting: ErrHeld means that another is at it.
func (o *Once) TryDo(ctx context.Context, fn func(ctx context.Context) error) (ran bool, err error) {
	return o.plain(ctx, false, fn)
}

// Call is Do for work that has a small result, of at most MaxResult bytes, which
// it returns if it runs, and as remembered if it doesn't.
func (o *Once) Call(ctx context.Context, fn func(ctx context.Context, run Run) ([]byte, error)) (result []byte, ran bool, err error) {
	return o.do(ctx, true, fn)
}

// TryCall is Call without waiting: ErrHeld means that another is at it.
func (o *Once) TryCall(ctx context.Context, fn func(ctx context.Context, run Run) ([]byte, error)) (result []byte, ran bool, err error) {
	return o.do(ctx, false, fn)
}

// A Run is what one run is told about itself.
type Run struct {
	Fence uint64 // of its lock, for the resource to check
	Again bool   // a run before it was interrupted: its work may be there, whole or in part
}

func (o *Once) plain(ctx context.Context, wait bool, fn func(ctx context.Context) error) (bool, error) {
	_, ran, err := o.do(ctx, wait, func(ctx context.Context, _ Run) ([]byte, error) { return nil, fn(ctx) })
	return ran, err
}

func (o *Once) do(ctx context.Context, wait bool, fn func(context.Context, Run) ([]byte, error)) (result []byte, ran bool, err error) {
	// Most who ask come long after it was done: they need no lock.
	if past, err := o.State(ctx); err != nil || past.Status == Done {
		if err == nil {
			err = o.matches(past)
		}
		return past.Result, false, err
	}
	under := func(ctx context.Context, lease *Lease) error {
		r := &run{Once: o, lease: lease, id: newID()}
		result, ran, err = r.do(ctx, fn)
		return err
	}
	if l := o.options.Lease; l != nil {
		bound, stop := l.Bind(ctx)
		defer stop()
		err = l.joined(under(bound, l))
	} else {
		err = o.lock.under(ctx, wait, under)
	}
	return result, ran, err
}
