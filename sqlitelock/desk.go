package sqlitelock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dibslock/dibs/driver"
)

// maxOps is how many operations share a transaction.
const maxOps = 256

// A desk is a goroutine that owns a connection. Callers queue at it; whatever has
// queued while it committed shares the next transaction and its fsync. A caller
// whose ctx ends goes away at once, also while the disk hangs; its operation is
// dropped if it has not begun.
type desk struct {
	s     *Store
	begin string // the statement: begin or beginRead
	view  *view
	ops   chan *op
	gone  chan struct{} // closed when the goroutine has ended
}

// An op is one caller's operation.
type op struct {
	run   func(*tx) error // its error is a certain answer if the transaction commits
	lazy  lazy
	state atomic.Int32
	err   error
	done  chan struct{} // closed when err is set
}

const (
	queued = iota
	begun
	dropped
)

func newDesk(s *Store, c *conn, begin string) *desk {
	d := &desk{s: s, begin: begin, view: &view{c: c}, ops: make(chan *op, maxOps), gone: make(chan struct{})}
	go d.loop() // until s.stop is closed
	return d
}

// do queues run and returns its answer, when it is on the disk.
func (d *desk) do(ctx context.Context, run func(*tx) error) error {
	return d.queue(ctx, &op{run: run, done: make(chan struct{})})
}

// doLazily is do for what may be answered before it is on the disk.
func (d *desk) doLazily(ctx context.Context, may lazy, run func(*tx) error) error {
	return d.queue(ctx, &op{run: run, lazy: may, done: make(chan struct{})})
}

func (d *desk) queue(ctx context.Context, o *op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.s.closed() {
		return driver.ErrClosed
	}
	select {
	case d.ops <- o:
	case <-ctx.Done():
		return d.s.unknown(context.Cause(ctx))
	case <-d.gone:
		return driver.ErrClosed
	}
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		o.state.CompareAndSwap(queued, dropped)
		return d.s.unknown(context.Cause(ctx))
	case <-d.gone:
	}
	select { // the desk's last answers may have been this one
	case <-o.done:
		return o.err
	default:
		return driver.ErrClosed
	}
}

// ask is do for an operation with a result.
func ask[T any](ctx context.Context, d *desk, run func(*tx) (T, error)) (T, error) {
	return askLazily(ctx, d, nil, run)
}

// askLazily is ask for what may be answered before it is on the disk.
func askLazily[T any](ctx context.Context, d *desk, may lazy, run func(*tx) (T, error)) (T, error) {
	r := new(T) // its own, because the caller may leave before it is written
	err := d.doLazily(ctx, may, func(t *tx) (err error) {
		*r, err = run(t)
		return err
	})
	if err != nil { // also when the caller left, and run may still write r
		var none T
		return none, err
	}
	return *r, nil
}

func (d *desk) loop() {
	defer close(d.gone)
	batch := make([]*op, 0, maxOps)
	for {
		select {
		case o := <-d.ops:
			batch = d.gather(append(batch[:0], o))
			d.serve(batch)
		case <-d.s.stop:
			return
		}
	}
}

// gather adds what else has queued.
func (d *desk) gather(batch []*op) []*op {
	for len(batch) < maxOps {
		select {
		case o := <-d.ops:
			batch = append(batch, o)
		default:
			return batch
		}
	}
	return batch
}

// serve runs batch in one transaction and answers each.
func (d *desk) serve(batch []*op) {
	lazy := mayBeLazy(batch, d.view)
	t, err := d.transact(batch, lazy)
	if err == errDrew {
		d.view.rollback()
		t, err = d.transact(batch, false)
	}
	if err != nil {
		d.view.rollback()
		err = d.s.failed(err)
	}
	if t != nil && err == nil {
		t.tell()
	}
	for _, o := range batch {
		if err != nil {
			o.err = err
		}
		close(o.done)
	}
}

func (d *desk) transact(batch []*op, lazy bool) (*tx, error) {
	if err := d.view.c.setLazy(lazy); err != nil {
		return nil, err
	}
	if err := d.enter(batch); err != nil {
		return nil, err
	}
	if err := d.s.file.check(); err != nil {
		return nil, err
	}
	t := newTx(d)
	for _, o := range batch {
		if !o.state.CompareAndSwap(queued, begun) && o.state.Load() == dropped {
			continue
		}
		o.err = o.run(t)
		if t.err != nil {
			return nil, t.err
		}
	}
	if lazy && t.drew {
		return nil, errDrew
	}
	if err := t.save(); err != nil {
		return nil, err
	}
	if err := d.view.commit(); err != nil {
		return nil, &commitError{err}
	}
	return t, nil
}

// enter begins the transaction. Another process may have the write lock: then it
// tries again until it gets it, nobody of batch waits any more, or the store is
// closed.
func (d *desk) enter(batch []*op) error {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		err := d.view.begin(d.begin)
		if !isBusy(err) {
			return err
		}
		_ = d.view.c.run("rollback") // of a snapshot that could not be taken
		if !wanted(batch) {
			return errLeft
		}
		// The jitter keeps processes that collided from colliding again.
		t := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-t.C:
		case <-d.s.stop:
			t.Stop()
			return driver.ErrClosed
		}
	}
}

// errLeft answers callers who have left.
var errLeft = errors.New("nobody waits for the answer")

func wanted(batch []*op) bool {
	for _, o := range batch {
		if o.state.Load() != dropped {
			return true
		}
	}
	return false
}

// A commitError is a commit that failed: it may have reached the disk.
type commitError struct{ err error }

func (e *commitError) Error() string { return fmt.Sprintf("commit: %v", e.err) }

func (e *commitError) Unwrap() error { return e.err }
