package drivertest

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Recorder remembers every call. It is made for [Wrap].
type Recorder struct {
	mu    sync.Mutex // guards calls, and what they point to
	calls []*Recorded
}

// A Recorded is one call as its caller saw it.
type Recorded struct {
	Call
	Answer
	Sent     time.Time
	Deadline time.Time // of its ctx; zero: none
	Answered time.Time // zero: not yet
}

// Around remembers a call: see [Wrap].
func (r *Recorder) Around(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
	c.Claims = slices.Clone(c.Claims)
	rec := &Recorded{Call: c, Sent: time.Now()}
	rec.Deadline, _ = ctx.Deadline()
	r.mu.Lock()
	r.calls = append(r.calls, rec)
	r.mu.Unlock()
	a := do(ctx)
	r.mu.Lock()
	rec.Answer, rec.Answered = a, time.Now()
	r.mu.Unlock()
	return a
}

// Calls returns the calls of op so far, in the order in which they were sent.
func (r *Recorder) Calls(op Op) []Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	var some []Recorded
	for _, c := range r.calls {
		if c.Op == op {
			some = append(some, *c)
		}
	}
	return some
}
