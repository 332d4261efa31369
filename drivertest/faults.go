package drivertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// A Fault is what a link does to calls.
type Fault uint8

// The faults. Every one but Pass makes the outcome of a call unknown.
const (
	Pass        Fault = iota // no fault
	BlackHole                // the request is lost and the call hangs until its ctx ends
	DropReplies              // the request is applied and the call hangs until its ctx ends
	CutBefore                // the request is lost and the call fails at once
	CutAfter                 // the request is applied and then the call fails at once
	Late                     // the call hangs until its ctx ends; its request arrives at Land
)

// Faults lists every fault but Pass.
var Faults = []Fault{BlackHole, DropReplies, CutBefore, CutAfter, Late}

var faults = [...]string{"pass", "black hole", "drop replies", "cut before", "cut after", "late"}

// String names f.
func (f Fault) String() string {
	if int(f) < len(faults) {
		return faults[f]
	}
	return "unknown"
}

// A Link is the way between one client and its storage, which can fail. All
// methods may be called at any time by any goroutine.
type Link interface {
	// Set makes f hold for the calls that begin from now on. Calls in flight
	// keep their fault; on a wire they may fail instead. What is late is not
	// affected: see Land. A Set to Pass after another fault tells subscriptions
	// that their connection was lost.
	Set(f Fault)
	// Delay makes every call that begins from now on take that much longer:
	// request until it arrives, reply until its answer does. A ctx that ends
	// first ends the call; a request that is under way still arrives.
	Delay(request, reply time.Duration)
	// Land lets the requests that Late kept arrive now, in their order, and
	// returns after they were applied (on a wire: sent on).
	Land()
	// Injected tells how many calls (on a wire: messages or connections) each
	// fault has hit.
	Injected() map[Fault]int
}

// ErrCut is the unknown error of CutBefore and CutAfter on an in-process link.
var ErrCut = errors.New("the link was cut")

// A LocalLink is a Link in the same process. It is made for [Wrap], and besides
// a Link's faults it can pick its victims.
type LocalLink struct {
	mu             sync.Mutex // guards all below
	fault          Fault
	pick           func(Call) (Fault, bool)
	request, reply time.Duration
	injected       map[Fault]int
	late           []func()
	feeds          map[*subscription]struct{}
}

// NewLink returns a link that passes everything.
func NewLink() *LocalLink {
	return &LocalLink{injected: make(map[Fault]int), feeds: make(map[*subscription]struct{})}
}

// Set is Link's.
func (l *LocalLink) Set(f Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	healed := l.fault != Pass && f == Pass
	l.fault = f
	for s := range l.feeds {
		s.cut(f != Pass, healed)
	}
}

// Pick lets pick choose a call's fault; calls for which it answers false get
// that of Set. It is called with the link locked, so it must not use it. nil
// ends it.
func (l *LocalLink) Pick(pick func(Call) (Fault, bool)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pick = pick
}

// On makes f the fault of the calls of op alone, until the next On, Pick or a
// nil Pick.
func (l *LocalLink) On(f Fault, ops ...Op) {
	l.Pick(func(c Call) (Fault, bool) {
		return f, slices.Contains(ops, c.Op)
	})
}

// Delay is Link's.
func (l *LocalLink) Delay(request, reply time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.request, l.reply = request, reply
}

// Land is Link's.
func (l *LocalLink) Land() {
	l.mu.Lock()
	late := l.late
	l.late = nil
	l.mu.Unlock()
	for _, apply := range late {
		apply()
	}
}

// Injected is Link's.
func (l *LocalLink) Injected() map[Fault]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.injected)
}

// Around puts the link in front of a store: see [Wrap].
func (l *LocalLink) Around(ctx context.Context, c Call, do func(context.Context) Answer) Answer {
	fault, request, reply := l.next(c)
	arrives := fault == Pass || fault == DropReplies || fault == CutAfter
	if c.subscribes() {
		arrives = fault == Pass // a subscription ends with its connection
	}
	if arrives && request > 0 {
		start := time.Now()
		if !sleep(ctx, request) {
			if !c.subscribes() {
				go func() { // ends with the call, after the rest of the delay
					time.Sleep(time.Until(start.Add(request)))
					arrive(ctx, do)
				}()
			}
			return unknown(ctx, "on its way")
		}
	}
	if fault != Pass {
		if arrives {
			arrive(ctx, do)
		}
		if fault == CutBefore || fault == CutAfter {
			return Answer{Err: ErrCut}
		}
		<-ctx.Done()
		if fault == Late && !c.subscribes() {
			l.mu.Lock()
			l.late = append(l.late, func() { arrive(ctx, do) })
			l.mu.Unlock()
		}
		return unknown(ctx, fault.String())
	}
	a := do(ctx)
	if reply > 0 && !sleep(ctx, reply) {
		return unknown(ctx, "its answer is on its way")
	}
	if v, ok := a.Value.(watched); ok && a.Err == nil {
		a.Value = l.follow(ctx, v)
	}
	return a
}

// arrive applies a request that is under way, whatever happens to its caller.
func arrive(ctx context.Context, do func(context.Context) Answer) { do(context.WithoutCancel(ctx)) }

// subscribes tells that the call's ctx is the life of what it returns.
func (c Call) subscribes() bool { return c.Op == OpWatch || c.Op == OpLosses }

// next tells what happens to c, and counts it.
func (l *LocalLink) next(c Call) (f Fault, request, reply time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f = l.fault
	if l.pick != nil {
		if picked, ok := l.pick(c); ok {
			f = picked
		}
	}
	if f != Pass {
		l.injected[f]++
	}
	return f, l.request, l.reply
}

// sleep waits for d and tells whether ctx let it.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// unknown is the answer of a call whose ctx ended.
func unknown(ctx context.Context, why string) Answer {
	return Answer{Err: fmt.Errorf("%s: %w", why, context.Cause(ctx))}
}
