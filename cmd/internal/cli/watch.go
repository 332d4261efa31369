package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dibslock/dibs"
)

const (
	quietTime = 400 * time.Millisecond // a wait shorter than this is not worth a word
	lineEvery = 15 * time.Second       // how often a wait is told of
)

// A watch hears what the library does, and tells a person who waits about it.
type watch struct {
	r *runner

	mu    sync.Mutex // guards what follows
	held  *dibs.HeldError
	heard time.Time // when held came
	down  error     // why the store gave no clear answer; nil: it did
	last  error     // why the last renewal failed
}

func newWatch(r *runner) *watch { return &watch{r: r} }

func (w *watch) hooks() dibs.Hooks {
	return dibs.Hooks{
		Waiting: func(_ context.Context, _ dibs.AcquireInfo, held *dibs.HeldError) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.held, w.heard, w.down = held, time.Now(), nil
		},
		Retrying: func(_ context.Context, _ dibs.AcquireInfo, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.held, w.down = nil, err
		},
		Renewed: func(info dibs.RenewInfo) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.last = info.Err
		},
	}
}

// trouble tells why the last renewal failed, or nil.
func (w *watch) trouble() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// aged is a refusal as it would be now, if nothing has changed since.
func (w *watch) aged(now time.Time, e *dibs.HeldError) *dibs.HeldError {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.agedLocked(now, e)
}

func (w *watch) agedLocked(now time.Time, e *dibs.HeldError) *dibs.HeldError {
	if e != w.held || e.Holder == nil {
		return e
	}
	passed := now.Sub(w.heard)
	aged, holder := *e, *e.Holder
	holder.Age += passed
	holder.Left = max(holder.Left-passed, 0)
	aged.Holder = &holder
	return &aged
}

// start tells of the wait until stop is called.
func (w *watch) start() (stop func()) {
	if w.r.quiet {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() { // ends when stop closes quit
		defer close(done)
		tick := time.NewTicker(quietTime)
		defer tick.Stop()
		var told time.Time
		var kind string
		for {
			select {
			case <-quit:
				return
			case now := <-tick.C:
				line, k := w.line(now)
				if k != kind || now.Sub(told) >= lineEvery {
					told, kind = now, k
					say(w.r.stderr, "%s", line)
				}
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// line is what to say now, and of which kind it is: a change of kind is told at
// once.
func (w *watch) line(now time.Time) (line, kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited := "waiting"
	if d := now.Sub(w.r.began); d >= time.Second {
		waited += " for " + short(d)
	}
	switch {
	case w.held != nil:
		held := w.agedLocked(now, w.held)
		line = waited + ": " + inTheWay(now, held)
		if p := prospects(held); p != "" {
			line += "; " + p
		}
		return line, "held"
	case w.down != nil:
		until := "; giving up after " + short(w.r.ttl.Duration) + " without one"
		if d := w.r.wait.Duration; d > 0 {
			until = "; giving up when " + short(d) + " are over"
		}
		return fmt.Sprintf("%s: the store %s gives no clear answer: %v%s", waited, w.r.place, w.down, until), "down"
	}
	return "", ""
}
