package pglock

import (
	"context"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

const (
	// workers is how many writers there are, at most.
	workers = 3
	// maxNames is how many names one statement is about, at most.
	maxNames = 512
	// abandon is how long a call goes on that nobody waits for any more, before
	// its connection is taken for dead.
	abandon = time.Second
)

// A desk takes the operations of all callers and gives them to its writers, each of
// which has a connection. Operations on the same name, and on many names, that queue
// while the writers are busy share the next round trips; a caller that finds one free
// uses it by itself for what is usual. A caller whose ctx
// ends goes away at once, also while the server hangs; its operation is dropped if
// its name has not been read.
type desk struct {
	s    *Table
	work sync.WaitGroup // what runs on a writer

	mu     sync.Mutex // guards all below, and the state of ops and batches
	queues map[string]*queue
	ready  []*queue  // with operations, and not at work
	spare  []*writer // that nobody uses
	number int       // writers, used and spare
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
	// short, if it is set, are the shortcuts to be tried before that.
	short func() []shortcut
	renew *renewal      // what there is to renew, if that is all
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
	return &desk{s: s, queues: make(map[string]*queue)}
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

// callLocked has one more writer look for something to do.
func (d *desk) callLocked() {
	var w *writer
	switch k := len(d.spare); {
	case len(d.ready) == 0:
		return
	case k > 0:
		w, d.spare = d.spare[k-1], d.spare[:k-1]
	case d.number < workers:
		d.number++
		w = &writer{s: d.s, desk: d}
	default:
		return // whoever is done first looks again
	}
	d.work.Go(func() { d.run(w) }) // ends when there is nothing to do
}

// run has w do what there is to do.
func (d *desk) run(w *writer) {
	for b := d.take(w); b != nil; b = d.take(w) {
		if !w.tryShort(b) {
			w.serve(b)
		}
		b.cancel()
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

// take returns the next batch for w. If there is none w is spare.
func (d *desk) take(w *writer) *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		if b := d.gatherLocked(); b != nil {
			d.callLocked()
			return b
		}
	}
	d.spare = append(d.spare, w)
	return nil
}

// takeSelf takes o's name, and a writer whose connection is ready, for the caller's
// own goroutine: for o alone.
func (d *desk) takeSelf(o *op) (*batch, *writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := len(d.spare)
	if d.closed || k == 0 || len(d.ready) > 0 || d.queues[o.name] != nil || !d.spare[k-1].ready() {
		return nil, nil
	}
	w := d.spare[k-1]
	d.spare = d.spare[:k-1]
	d.work.Add(1)
	q := &queue{name: o.name, atWork: true}
	d.queues[o.name] = q
	o.done = make(chan struct{})
	return &batch{queues: []*queue{q}, ops: [][]*op{{o}}, wanted: 1}, w
}

// hand turns b, of a caller's own goroutine, into one like all others.
func (d *desk) hand(b *batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b.ctx, b.cancel = context.WithCancel(d.s.life)
	b.ops[0][0].batch = b
}

// putBack makes w spare again, after a caller has used it.
func (d *desk) putBack(w *writer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.spare = append(d.spare, w)
	if !d.closed {
		d.callLocked()
	}
	d.work.Done()
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
	d.mu.Unlock()
	d.work.Wait()
	for _, w := range d.spare {
		if w.session != nil {
			w.session.bye()
		}
	}
}

// do runs one operation.
func (d *desk) do(ctx context.Context, key string, run func(n *name) error, short func() []shortcut) error {
	if err := ctx.Err(); err != nil {
		return left(ctx)
	}
	o := &op{name: key, run: run, short: short}
	if short == nil || !d.serveSelf(o) {
		if err := d.submit(o); err != nil {
			return err
		}
	}
	return d.await(ctx, o)
}
