package pglock

import (
	"context"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

const (
	// workers is how many connections write at once, at most.
	workers = 3
	// maxNames is how many names one statement is about, at most.
	maxNames = 512
	// abandon is how long a call goes on that nobody waits for any more, before
	// its connection is taken for dead.
	abandon = time.Second
)

// A desk takes the operations of all callers and gives them to its workers, each
// of which has a connection. Operations on the same name, and on many names, that
// queue while the workers are busy share the next round trips. A caller whose ctx
// ends goes away at once, also while the server hangs; its operation is dropped if
// its name has not been read.
type desk struct {
	s    *Table
	work sync.WaitGroup
	more *sync.Cond // there is something to do for an idle worker

	mu     sync.Mutex // guards all below, and the state of ops and batches
	queues map[string]*queue
	ready  []*queue // with operations, and not at work
	idle   int      // workers that wait for more and were not told of any
	number int      // workers that run
	closed bool
}

// A queue is one name's operations, first come first.
type queue struct {
	name   string
	ops    []*op
	atWork bool
}

// An op is one caller's operation on one name.
type op struct {
	name string
	// run works out the step and its answer. It may be called more than once: the
	// answer of the last call counts.
	run func(n *name) error
	// short, if it is set, answers from what was known of the name, in one round
	// trip: see shortcut.
	short func(m *memory) *shortcut
	done  chan struct{} // closed when err is set
	err   error
	doubt error  // of a shortcut that may have been done
	left  bool   // its caller has gone
	batch *batch // that it is in; nil: it is queued
}

// A batch is what one worker does at a time.
type batch struct {
	queues []*queue
	ops    [][]*op         // of each queue
	wanted int             // ops whose callers wait
	ctx    context.Context // ends if the batch is given up: it is the batch's life
	cancel context.CancelFunc
}

func newDesk(s *Table) *desk {
	d := &desk{s: s, queues: make(map[string]*queue)}
	d.more = sync.NewCond(&d.mu)
	return d
}

// submit queues ops. They are all on different names, or their order is kept.
func (d *desk) submit(ops ...*op) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return driver.ErrClosed
	}
	for _, o := range ops {
		o.done = make(chan struct{})
		q := d.queues[o.name]
		if q == nil {
			q = &queue{name: o.name}
			d.queues[o.name] = q
		}
		q.ops = append(q.ops, o)
		if len(q.ops) == 1 && !q.atWork {
			d.ready = append(d.ready, q)
		}
	}
	d.callLocked()
	return nil
}

// callLocked has one more worker look for something to do.
func (d *desk) callLocked() {
	switch {
	case d.idle > 0:
		d.idle--
		d.more.Signal()
	case d.number < workers:
		d.number++
		d.work.Go(d.worker) // until close
	}
}

// await waits for o's answer, or for the end of ctx.
func (d *desk) await(ctx context.Context, o *op) error {
	select {
	case <-o.done:
		return o.err
	default:
	}
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		d.leave(o)
		return left(ctx)
	}
}

func (d *desk) leave(o *op) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.left {
		return
	}
	o.left = true
	if b := o.batch; b != nil {
		b.wanted--
		if b.wanted == 0 {
			time.AfterFunc(abandon, b.cancel)
		}
	}
}

// take returns the next batch, or nil when the desk is closed.
func (d *desk) take() *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	for !d.closed {
		if b := d.gatherLocked(); b != nil {
			if len(d.ready) > 0 {
				d.callLocked()
			}
			return b
		}
		d.idle++
		d.more.Wait() // whoever wakes this one has taken it off idle
	}
	return nil
}

// gatherLocked makes a batch of what is ready and wanted; nil: nothing is.
func (d *desk) gatherLocked() *batch {
	b := &batch{}
	b.ctx, b.cancel = context.WithCancel(d.s.life)
	for len(d.ready) > 0 && len(b.queues) < maxNames {
		q := d.ready[0]
		d.ready = d.ready[1:]
		ops := q.ops[:0]
		for _, o := range q.ops {
			if !o.left {
				o.batch = b
				ops = append(ops, o)
			}
		}
		q.ops = nil
		if len(ops) == 0 {
			delete(d.queues, q.name)
			continue
		}
		q.atWork = true
		b.queues, b.ops = append(b.queues, q), append(b.ops, ops)
		b.wanted += len(ops)
	}
	if len(b.queues) == 0 {
		b.cancel()
		return nil
	}
	return b
}

// answer gives the operations of b's i-th name their answers; err, if it is not
// nil, is that of all.
func (d *desk) answer(b *batch, i int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := b.queues[i]
	for _, o := range b.ops[i] {
		if err != nil {
			o.err = err
		}
		if !o.left {
			b.wanted--
		}
		o.batch = nil
		close(o.done)
	}
	b.ops[i] = nil
	q.atWork = false
	if len(q.ops) > 0 {
		d.ready = append(d.ready, q)
	} else {
		delete(d.queues, q.name)
	}
}

// wants tells whether anybody waits for o.
func (d *desk) wants(o *op) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !o.left
}

// close answers what is queued and waits for the workers.
func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	for _, q := range d.queues {
		for _, o := range q.ops {
			o.err = driver.ErrClosed
			close(o.done)
		}
		q.ops = nil
	}
	d.more.Broadcast()
	d.mu.Unlock()
	d.work.Wait()
}

func (d *desk) worker() {
	w := writer{s: d.s, desk: d}
	defer func() {
		if w.session != nil {
			w.session.bye()
		}
	}()
	for {
		b := d.take()
		if b == nil {
			return
		}
		w.serve(b)
		b.cancel()
	}
}

// do runs one operation.
func (d *desk) do(ctx context.Context, key string, run func(n *name) error, short func(m *memory) *shortcut) error {
	if err := ctx.Err(); err != nil {
		return left(ctx)
	}
	o := &op{name: key, run: run, short: short}
	if err := d.submit(o); err != nil {
		return err
	}
	return d.await(ctx, o)
}
