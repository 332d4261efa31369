// Package calls makes contexts for calls that are nearly always over at once.
//
// A context from [context.WithTimeout] costs a timer, a place among its parent's
// children and five allocations: for a lock that takes 50 microseconds on the
// network that is more than all else its client does, and it is paid for what
// hardly ever happens. A Minder hands out bare contexts instead. It looks after a
// moment which calls are still under way, and gives those what WithTimeout would
// have given them: from then on they end with their parent and at their deadline,
// exactly. So what is given up is this: a call ends up to two moments later than
// its parent, if that ends within the first moment.
package calls

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	moment   = 4 * time.Millisecond // a call of a loaded server should be over by then
	maxSpare = 64                   // contexts that are kept to be used again
)

// A Minder makes contexts for calls. All of them share one timer, which runs only
// while there are calls; there is nothing to close.
type Minder struct {
	start time.Time

	mu     sync.Mutex // guards what follows
	timer  *time.Timer
	armed  bool    // timer runs
	bare   []*Call // under way and not looked at yet
	spares []*Call // to be used again
}

// New returns a Minder.
func New() *Minder {
	m := &Minder{start: time.Now()}
	m.timer = time.AfterFunc(time.Hour, m.look)
	m.timer.Stop()
	return m
}

// A Call is the context of one call. Its values are its parent's.
type Call struct {
	m        *Minder
	parent   context.Context
	began    time.Duration // since m.start
	deadline time.Duration
	done     chan struct{}
	over     atomic.Bool // err is set

	// Guarded by m.mu.
	at    int   // in m.bare, plus 1; 0: it has what WithTimeout gives
	err   error // why done is closed
	stops [2]func() bool
	after []*func()
}

// Begin returns the context of a call that ends with parent, or when timeout is
// over. It must be ended when the call has returned, and not be looked at after
// that: another call may be using it then.
func (m *Minder) Begin(parent context.Context, timeout time.Duration) *Call {
	now := time.Since(m.start)
	m.mu.Lock()
	defer m.mu.Unlock()
	var c *Call
	if n := len(m.spares); n > 0 {
		c = m.spares[n-1]
		m.spares = m.spares[:n-1]
	} else {
		c = &Call{m: m, done: make(chan struct{})}
	}
	c.parent, c.began, c.deadline = parent, now, now+timeout
	m.bare = append(m.bare, c)
	c.at = len(m.bare)
	switch {
	case timeout < 4*moment:
		c.clotheLocked(now)
	case !m.armed:
		m.armed = true
		m.timer.Reset(moment)
	}
	return c
}

// End ends the call, and whatever was derived from its context.
func (c *Call) End() {
	m := c.m
	m.mu.Lock()
	if c.at != 0 && c.err == nil {
		// Nobody was promised to hear of its end, and nobody has.
		c.bareLocked()
		c.parent = context.Background()
		if len(m.spares) < maxSpare {
			m.spares = append(m.spares, c)
		}
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	c.finish(context.Canceled)
}

// look gives the calls that last what they need.
func (m *Minder) look() {
	now := time.Since(m.start)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range slices.Clone(m.bare) {
		if now-c.began >= moment {
			c.clotheLocked(now)
		}
	}
	if m.armed = len(m.bare) > 0; m.armed {
		m.timer.Reset(moment)
	}
}

// bareLocked takes c out of those that are not looked at yet.
func (c *Call) bareLocked() {
	m, last := c.m, len(c.m.bare)-1
	m.bare[c.at-1] = m.bare[last]
	m.bare[c.at-1].at = c.at
	m.bare[last] = nil
	m.bare, c.at = m.bare[:last], 0
}

// clotheLocked makes c end as a context from WithTimeout does, unless it does
// already.
func (c *Call) clotheLocked(now time.Duration) {
	if c.at == 0 {
		return
	}
	c.bareLocked()
	parent := c.parent
	c.stops = [2]func() bool{
		time.AfterFunc(c.deadline-now, func() { c.finish(context.DeadlineExceeded) }).Stop,
		context.AfterFunc(parent, func() { c.finish(parent.Err()) }),
	}
}

// finish closes done for err, once.
func (c *Call) finish(err error) {
	c.m.mu.Lock()
	if c.err != nil {
		c.m.mu.Unlock()
		return
	}
	if c.at != 0 {
		c.bareLocked()
	}
	c.err = err
	c.over.Store(true)
	close(c.done)
	stops, after := c.stops, c.after
	c.after = nil
	c.m.mu.Unlock()
	for _, stop := range stops {
		if stop != nil {
			stop()
		}
	}
	for _, f := range after {
		go (*f)() // ends as its owner wants, who asked for it by AfterFunc
	}
}

// Deadline returns the earlier of the call's and its parent's.
func (c *Call) Deadline() (time.Time, bool) {
	own := c.m.start.Add(c.deadline)
	if d, ok := c.parent.Deadline(); ok && d.Before(own) {
		return d, true
	}
	return own, true
}

// Done is closed when the call has to end.
func (c *Call) Done() <-chan struct{} { return c.done }

// Err tells why the call has to end, or nil. It looks at the parent itself.
func (c *Call) Err() error {
	if !c.over.Load() {
		err := c.parent.Err()
		if err == nil {
			return nil
		}
		c.finish(err)
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.err
}

// Value returns the parent's.
func (c *Call) Value(key any) any { return c.parent.Value(key) }

// AfterFunc is how package context derives a context from c without a goroutine:
// f is called on a goroutine of its own when c has ended, unless stop is called
// first.
func (c *Call) AfterFunc(f func()) (stop func() bool) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.err != nil {
		go f() // as above
		return func() bool { return false }
	}
	c.clotheLocked(time.Since(c.m.start)) // so c is not used again
	c.after = append(c.after, &f)
	return func() bool {
		c.m.mu.Lock()
		defer c.m.mu.Unlock()
		i := slices.Index(c.after, &f)
		if i < 0 {
			return false
		}
		c.after = slices.Delete(c.after, i, i+1)
		return true
	}
}
