package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// An inbox is where the signals to dibs arrive, to be passed on.
type inbox struct {
	signals chan os.Signal
	drain   chan os.Signal // nobody reads it
}

// listen takes the signals that end a wait. One that was ignored when dibs was
// started, as by nohup, stays ignored, for the command too.
func listen() *inbox {
	in := &inbox{signals: make(chan os.Signal, 32), drain: make(chan os.Signal, 1)}
	in.add(ending)
	// A message into a closed pipe must not end dibs, and with it the command; nor
	// may its last one, which comes after stop, change the exit code.
	for _, sig := range broken {
		if !signal.Ignored(sig) {
			signal.Notify(in.drain, sig)
		}
	}
	return in
}

// whole takes the others too, which have their usual effect until the command
// runs.
func (in *inbox) whole() { in.add(passing) }

func (in *inbox) add(sigs []os.Signal) {
	for _, sig := range sigs {
		if !signal.Ignored(sig) {
			signal.Notify(in.signals, sig)
		}
	}
}

func (in *inbox) stop() { signal.Stop(in.signals) }

// A signalError says that a signal ended the wait.
type signalError struct{ sig os.Signal }

func (e *signalError) Error() string { return fmt.Sprintf("signal: %v", e.sig) }

func (e *signalError) failure(key string) error {
	n, _ := e.sig.(syscall.Signal)
	return failf(exitSignal+int(n), "%v: gave up %s; the command was not started", e.sig, quote(key))
}

// signalOf returns the signal that ended ctx, or nil.
func signalOf(ctx context.Context) *signalError {
	var e *signalError
	if errors.As(context.Cause(ctx), &e) {
		return e
	}
	return nil
}
