package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dibslock/dibs"
)

const (
	quietTime    = 400 * time.Millisecond // a wait shorter than this is not worth a word
	lineEvery    = 15 * time.Second       // how often a wait is told of
	drawEvery    = time.Second            // the same, on a terminal
	patientEvery = time.Hour              // the same, of a wait that may well be for ever
	findEvery    = 3 * time.Second        // how often the line is looked at
)

// A watch hears what the library does, and tells a person who waits about it.
type watch struct {
	r       *runner
	renewed chan struct{}                                            // capacity 1: a renewal has ended
	look    func(ctx context.Context, key string) (keyStatus, error) // at a key, as far as the store can tell

	mu    sync.Mutex // guards what follows
	held  *dibs.HeldError
	heard time.Time // when held came
	down  error     // why the store gave no clear answer; nil: it did
	last  error     // why the last renewal failed

	position int       // in line; 0: not known
	found    time.Time // when it was asked for; the goroutine of start alone needs it
}

func newWatch(r *runner) *watch { return &watch{r: r, renewed: make(chan struct{}, 1)} }

func (w *watch) hooks() dibs.Hooks {
	return dibs.Hooks{
		Waiting: func(_ context.Context, _ dibs.AcquireInfo, held *dibs.HeldError) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.held == nil {
				w.r.events.add(event{Event: "waiting", Reason: held.Error()})
			}
			w.held, w.heard, w.down = held, time.Now(), nil
		},
		Retrying: func(_ context.Context, _ dibs.AcquireInfo, err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.held, w.down = nil, err
		},
		Renewed: func(info dibs.RenewInfo) {
			w.mu.Lock()
			w.last = info.Err
			w.mu.Unlock()
			select {
			case w.renewed <- struct{}{}:
			default: // one signal is enough
			}
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
	if !holder.Foreign || holder.Age > 0 {
		holder.Age += passed
	}
	holder.Left = max(holder.Left-passed, 0)
	aged.Holder = &holder
	return &aged
}

// start tells of the wait until stop is called.
func (w *watch) start() (stop func()) {
	w.mu.Lock()
	w.held, w.down, w.last = nil, nil, nil // they are of a wait before
	w.mu.Unlock()
	if w.r.quiet {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	live := newLiveLine(w.r.stderr)
	every := lineEvery
	switch {
	case live != nil:
		every = drawEvery
	case w.r.patient:
		every = patientEvery
	}
	done := make(chan struct{})
	go func() { // ends with ctx, which stop ends
		defer close(done)
		defer live.clear()
		tick := time.NewTicker(quietTime)
		defer tick.Stop()
		var told time.Time
		var kind string
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				_, k := w.line(now)
				if k == "" || k == kind && now.Sub(told) < every {
					continue
				}
				w.find(ctx, now)
				told, kind = now, k
				line, _ := w.line(now)
				if live != nil {
					live.show("dibs: " + line)
				} else {
					say(w.r.stderr, "%s", line)
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// find asks for the position in line, not too often: it takes a look at the
// whole line.
func (w *watch) find(ctx context.Context, now time.Time) {
	w.mu.Lock()
	held := w.held
	w.mu.Unlock()
	if held == nil || held.Place == 0 || now.Sub(w.found) < findEvery {
		return
	}
	w.found = now
	n := w.status(ctx, held.Name).position(held.Place)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.position = n
}

// findTime bounds a look at the key and its line.
const findTime = time.Second

// status is who holds key and who waits for it; empty if that can't be told.
func (w *watch) status(ctx context.Context, key string) keyStatus {
	if w.look == nil {
		return keyStatus{}
	}
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	k, err := w.look(ctx, key)
	if err != nil {
		return keyStatus{}
	}
	return k
}

// line is what to say now, and of which kind it is: a change of kind is told at
// once. Both are empty until the store has answered.
func (w *watch) line(now time.Time) (line, kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited := "waiting"
	if d := now.Sub(w.r.began); d >= time.Second {
		waited += " for " + short(d)
	}
	switch {
	case w.held != nil:
		if w.position > 0 {
			waited += fmt.Sprintf(", %d in line", w.position)
		}
		held := w.agedLocked(now, w.held)
		line = waited + ": " + inTheWay(now, held)
		if p := prospects(held); p != "" {
			line += "; " + p
		}
		if held.Holder != nil && w.r.patient { // that it is another is news
			return line, "held by " + held.Holder.Note
		}
		return line, "held"
	case w.down != nil:
		until := "; giving up after " + short(w.r.ttl.Duration) + " without one"
		switch d := w.r.wait.Duration; {
		case w.r.patient:
			until = ""
		case d > 0:
			until = "; giving up when " + short(d) + " are over"
		}
		return fmt.Sprintf("%s: the store %s gives no clear answer: %v%s", waited, w.r.place, w.down, until), "down"
	}
	return "", ""
}
