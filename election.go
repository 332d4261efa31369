package dibs

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrSteppedDown is the cause of the end of a leader's ctx by StepDown.
var ErrSteppedDown = errors.New("stepped down")

// An Election is about who leads name: whoever holds the lock on it. It is safe
// for concurrent use and holds nothing; all of a client and its siblings on one
// name are one.
type Election struct {
	client *Client
	name   string
}

// Election is about who leads name.
func (c *Client) Election(name string) *Election { return &Election{client: c, name: name} }

// Name returns what is led.
func (e *Election) Name() string { return e.name }

// Lead campaigns until ctx ends, and runs fn each time it wins. fn's ctx ends when
// the leadership is lost, by StepDown, with ctx, or when the client is closed; its
// cause says which. The lock is renewed until fn has returned and given back only
// then, so that no other can lead while fn, told to stop, is still at it: fn must
// stop when its ctx ends.
//
// After a loss, a StepDown, or a time in which the store gave no clear answer,
// Lead campaigns again, after a pause that grows from one time to the next. It
// returns when ctx or the client ends, with that cause; when fn returns by itself,
// while it leads, with fn's error; and for what campaigning again can't mend, such
// as a bad name. An error of fn after a loss is logged.
func (e *Election) Lead(ctx context.Context, fn func(ctx context.Context) error) error {
	c, set := e.client.core, e.client.set
	for try := 1; ; try++ {
		lease, err := e.client.Mutex(e.name).Lock(ctx)
		if err == nil {
			var over bool
			if over, err = e.reign(ctx, lease, fn); over {
				return err
			}
			if lease.held() > set.TTL { // that one went well
				try = 1
			}
		}
		if cause := c.over(ctx); cause != nil {
			return cause
		}
		if err != nil && !errors.Is(err, ErrUnknown) {
			return err
		}
		c.pause(ctx, backoff(min(try, 10), set.Poll/10, set.TTL))
	}
}

// A reign is a leadership under way.
type reign struct {
	lease *Lease
	end   context.CancelCauseFunc // ends fn's ctx
	over  chan struct{}           // closed when fn has returned and the lock was given back
}

// reign runs fn under lease. over tells that Lead is, and with what.
func (e *Election) reign(ctx context.Context, lease *Lease, fn func(ctx context.Context) error) (over bool, err error) {
	c := e.client.core
	if !c.calls.enter() { // Close gives the lease back
		return true, ErrClosed
	}
	bound, stop := lease.Bind(ctx)
	defer stop()
	bound, end := context.WithCancelCause(bound)
	defer end(nil)
	r := &reign{lease: lease, end: end, over: make(chan struct{})}
	done := make(chan struct{})
	go func() { // ends with fn
		select {
		case <-c.closing:
			end(ErrClosed)
		case <-done:
		}
	}()
	c.reigns.add(e.name, r)
	defer func() {
		close(done)
		c.calls.leave() // Close waits for fn, and then gives the lease back itself
		_ = lease.Release(ctx)
		c.reigns.remove(e.name, r)
		close(r.over)
	}()
	err = fn(bound)
	switch cause := context.Cause(bound); {
	case c.over(ctx) != nil:
		return true, after(err, c.over(ctx))
	case lease.Check() == nil && cause == nil:
		return true, err
	default:
		if err != nil && !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
			c.log.Warn("a leader failed after its leadership had ended", "name", e.name, "cause", cause, "err", err)
		}
		return false, nil
	}
}

// after is the error of work that ended with err after it was told to end for
// cause.
func after(err, cause error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, cause) {
		return cause
	}
	return errors.Join(err, cause)
}

// held returns how long ago the lease was granted.
func (l *Lease) held() time.Duration { return l.core.clock.now() - l.born }

// reigns are those of a client's elections, by name.
type reigns struct {
	mu     sync.Mutex // guards what follows
	byName map[string][]*reign
	past   map[string]uint64 // the token of the last one that is over
}

func (rs *reigns) add(name string, r *reign) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.byName == nil {
		rs.byName, rs.past = make(map[string][]*reign), make(map[string]uint64)
	}
	rs.byName[name] = append(rs.byName[name], r)
}

func (rs *reigns) remove(name string, r *reign) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var rest []*reign
	for _, other := range rs.byName[name] {
		if other != r {
			rest = append(rest, other)
		}
	}
	rs.byName[name] = rest
	rs.past[name] = max(rs.past[name], r.lease.Token())
	if rest == nil {
		delete(rs.byName, name)
	}
}

// of returns those of name: more than one if fn goes on after a loss.
func (rs *reigns) of(name string) []*reign {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return append([]*reign(nil), rs.byName[name]...)
}

// over tells whether token is that of a reign that is over, or older.
func (rs *reigns) over(name string, token uint64) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return token <= rs.past[name]
}
