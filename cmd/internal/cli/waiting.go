package cli

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/dibslock/dibs/driver"
)

var errWaitOver = errors.New("the wait is over")

// waiting is heeding with an end: that of the wait.
func (r *runner) waiting(in *inbox) (ctx context.Context, done func() os.Signal) {
	if r.wait.Duration == 0 {
		return r.heeding(context.Background(), in)
	}
	bounded, stop := context.WithDeadlineCause(context.Background(), r.began.Add(r.wait.Duration), errWaitOver)
	ctx, heard := r.heeding(bounded, in)
	return ctx, func() os.Signal {
		defer stop()
		return heard()
	}
}

// heeding returns a context for what comes before the command: it ends with a
// signal. done ends it, waits until nobody reads signals any more, and returns the
// signal that was read, if any.
func (r *runner) heeding(parent context.Context, in *inbox) (ctx context.Context, done func() os.Signal) {
	ctx, cancel := context.WithCancelCause(parent)
	over := make(chan struct{})
	var got os.Signal
	go func() { // ends with ctx, which done ends
		defer close(over)
		for got == nil {
			select {
			case sig := <-in.signals:
				if slices.Contains(ending, sig) { // the others are for a command
					got = sig
				}
			case <-r.parent:
				got = syscall.SIGTERM
			case <-ctx.Done():
				return
			}
		}
		cancel(&signalError{got})
	}()
	return ctx, func() os.Signal {
		cancel(nil)
		<-over
		return got
	}
}

// openStore opens the store; with --wait=DUR it goes on trying.
func (r *runner) openStore(in *inbox) (driver.Store, error) {
	ctx, done := r.waiting(in)
	store, err := r.reach(ctx)
	sig := done()
	if err == nil && sig != nil { // it came in the moment of success
		_ = store.Close() // nothing was asked of it
		return nil, (&signalError{sig}).failure(r.key)
	}
	return store, err
}

// reach opens the store until that succeeds, or trying on has no point.
func (r *runner) reach(ctx context.Context) (driver.Store, error) {
	for pause, said := 50*time.Millisecond, false; ; pause = min(2*pause, time.Second) {
		store, err := r.place.open(ctx)
		var f *failure
		if err == nil {
			return store, nil
		}
		if sig := signalOf(ctx); sig != nil {
			return nil, sig.failure(r.key)
		}
		if !errors.As(err, &f) || f.code != exitStoreDown || r.wait.Duration == 0 && !r.patient || ctx.Err() != nil {
			return nil, err
		}
		if !said && !r.quiet {
			say(r.stderr, "waiting for the store%s: %v", r.bound(), err)
			said = true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if sig := signalOf(ctx); sig != nil {
				return nil, sig.failure(r.key)
			}
			return nil, err
		}
	}
}

// bound says how long the wait may be.
func (r *runner) bound() string {
	if r.patient {
		return ""
	}
	return " for up to " + short(r.wait.Duration)
}

// sleep sleeps for d, unless a signal ends that.
func (r *runner) sleep(in *inbox, d time.Duration) error {
	ctx, done := r.heeding(context.Background(), in)
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	if sig := done(); sig != nil {
		return (&signalError{sig}).failure(r.key)
	}
	return nil
}
