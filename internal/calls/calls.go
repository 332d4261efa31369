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

// moment is how long a call of a loaded server may take.
const moment = 4 * time.Millisecond

// A Minder makes contexts for calls. All of them share one timer, which runs only
// while there are calls; there is nothing to close.
type Minder struct {
	start  time.Time
	spares sync.Pool   // of *Call, to be used again
	armed  atomic.Bool // timer runs, or look is about to see whether it has to

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	all   []*Call // those that are looked at
}

// New returns a Minder.
func New() *Minder {
	m := &Minder{start: time.Now()}
	m.spares.New = func() any {
		c := &Call{m: m, done: make(chan struct{})}
		c.state.Store(out)
		return c
	}
	m.timer = time.AfterFunc(time.Hour, m.look)
	m.timer.Stop()
	return m
}

// A Call is the context of one call. Its values are its parent's.
type Call struct {
	m        *Minder
	parent   context.Context
	deadline time.Duration // since m.start
	done     chan struct{}
	over     atomic.Bool  // err is set
	state    atomic.Int64 // when the call began, since m.start, if nobody was promised to hear of its end; or as follows

	mu    sync.Mutex // guards what follows
	err   error      // why done is closed
	stops [2]func() bool
	after []*func()
}

// What Call.state is else.
const (
	dressed = -iota // it has what WithTimeout gives, or has ended, and is not used again
	spare           // no call
	unused          // no call since the last look
	out             // nor since the one before that: it is not looked at
)

// Begin returns the context of a call that ends with parent, or when timeout is
// over. It must be ended when the call has returned, and not be looked at after
// that: another call may be using it then.
func (m *Minder) Begin(parent context.Context, timeout time.Duration) *Call {
	now := time.Since(m.start)
	c := m.spares.Get().(*Call)
	c.parent, c.deadline = parent, now+timeout
	if c.state.Swap(int64(now)+1) == out {
		m.mind(c)
	}
	if !m.armed.Load() {
		m.arm()
	}
	if timeout < 4*moment {
		c.dress(now)
	}
	return c
}

// mind has c looked at from now on.
func (m *Minder) mind(c *Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, c)
}

// arm has a look follow.
func (m *Minder) arm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.armed.Swap(true) {
		m.timer.Reset(moment)
	}
}

// End ends the call, and whatever was derived from its context.
func (c *Call) End() {
	if s := c.state.Load(); s > 0 && c.state.CompareAndSwap(s, spare) {
		// Nobody was promised to hear of its end, and nobody has.
		c.parent = nil
		c.m.spares.Put(c)
		return
	}
	c.finish(context.Canceled)
}

// look gives the calls that last what they need, and lets go of what was not used
// lately.
func (m *Minder) look() {
	now := time.Since(m.start)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed.Store(false) // first: a call that begins now is seen, or arms
	some := false
	m.all = slices.DeleteFunc(m.all, func(c *Call) bool {
		switch s := c.state.Load(); {
		case s > 0 && now-time.Duration(s) >= moment:
			c.dress(now) // if it has not ended just now
			return false
		case s > 0:
			some = true
			return false
		case s == spare:
			c.state.CompareAndSwap(spare, unused)
			return false
		case s == unused:
			return c.state.CompareAndSwap(unused, out)
		default:
			return true // it is not used again
		}
	})
	if some {
		m.armed.Store(true)
		m.timer.Reset(moment)
	}
}

// dress makes c end as a context from WithTimeout does, unless it does already.
func (c *Call) dress(now time.Duration) {
	s := c.state.Load()
	if s <= 0 || !c.state.CompareAndSwap(s, dressed) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	parent := c.parent
	c.stops = [2]func() bool{
		time.AfterFunc(c.deadline-now, func() { c.finish(context.DeadlineExceeded) }).Stop,
		context.AfterFunc(parent, func() { c.finish(parent.Err()) }),
	}
}

// finish closes done for err, once.
func (c *Call) finish(err error) {
	c.state.Store(dressed)
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	c.over.Store(true)
	close(c.done)
	stops, after := c.stops, c.after
	c.after = nil
	c.mu.Unlock()
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
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Value returns the parent's.
func (c *Call) Value(key any) any { return c.parent.Value(key) }

// AfterFunc is how package context derives a context from c without a goroutine:
// f is called on a goroutine of its own when c has ended, unless stop is called
// first.
func (c *Call) AfterFunc(f func()) (stop func() bool) {
	c.dress(time.Since(c.m.start)) // so c is not used again
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f() // as above
		return func() bool { return false }
	}
	c.after = append(c.after, &f)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.after, &f)
		if i < 0 {
			return false
		}
		c.after = slices.Delete(c.after, i, i+1)
		return true
	}
}
