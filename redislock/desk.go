package redislock

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// A desk takes calls of one script, which asks about many claims as well as about
// one. A caller lets all goroutines run that can, and then what those want goes with
// it, as one call; if nobody wants anything it sends its own call itself. Only if
// several are under way does it wait for one of them. So a client of one goroutine
// pays next to nothing for the desk, and in one of many the server runs a script for
// dozens of claims: that costs each of them a fraction, and less the busier both are.
//
// No claim depends on another of its batch: each has an answer of its own, a call
// that was rejected as a whole is repeated for each by itself, and whoever gives
// up leaves the others alone.
type desk struct {
	store  *Store
	script *script
	width  int // how many arguments the script wants about a claim
	lone   int // and how many more if there is no other

	mu      sync.Mutex // guards what follows, and every errand
	busy    int        // calls under way, or about to be
	gathers bool       // one of them is about to be, and waits for others to go with it
	line    []*errand  // those that wait
}

const (
	lanes      = 4  // calls under way at once
	maxInBatch = 64 // claims in one call: the server does nothing else meanwhile
)

// An errand is a call that waits for others. It does not keep its caller's ctx,
// which another call may have once that one has left.
type errand struct {
	name   string
	about  about
	answer rueidis.RedisMessage
	err    error
	done   chan struct{} // capacity 1
	batch  *batch        // nil: still in line
}

// about has a script's arguments about one claim, as many as that script wants.
type about [3]string

// A batch is some errands under way in one call.
type batch struct {
	all    []*errand
	left   int             // how many still wait for it
	ctx    context.Context // ends when nobody does
	cancel context.CancelFunc
}

var errands = sync.Pool{New: func() any { return &errand{done: make(chan struct{}, 1)} }}

// call asks about one claim on name.
func (d *desk) call(ctx context.Context, name string, a about) (rueidis.RedisMessage, error) {
	if err := d.store.enter(ctx); err != nil {
		return rueidis.RedisMessage{}, err
	}
	d.mu.Lock()
	leads := d.busy < lanes && !d.gathers
	if leads {
		d.busy++
		d.gathers = true
		d.mu.Unlock()
		runtime.Gosched() // who can run now may want to go with it
		d.mu.Lock()
		d.gathers = false
		if len(d.line) == 0 {
			d.mu.Unlock()
			m, err := d.alone(ctx, name, a)
			d.next()
			return m, err
		}
	}
	e := errands.Get().(*errand)
	e.name, e.about = name, a
	d.line = append(d.line, e)
	d.mu.Unlock()
	if leads {
		d.next()
	}
	select {
	case <-e.done:
		m, err := e.answer, e.err
		*e = errand{done: e.done}
		errands.Put(e)
		return m, err
	case <-ctx.Done():
		d.giveUp(e)
		return rueidis.RedisMessage{}, d.store.failed(ctx, name, ctx.Err())
	}
}

// alone is a call about one claim.
func (d *desk) alone(ctx context.Context, name string, a about) (rueidis.RedisMessage, error) {
	s, p := d.store, papers.Get().(*paper)
	p.keys = s.on(p.keys[:0], name)
	p.args = s.with(name, append(append(p.args[:0], "1"), a[:d.width+d.lone]...)...)
	m, err := s.eval(ctx, d.script, name, p.keys, p.args)
	papers.Put(p) // what was sent is a copy
	return m, err
}

// A paper is what a call is written on.
type paper struct{ names, keys, args []string }

var papers = sync.Pool{New: func() any { return new(paper) }}

// giveUp leaves e, whose caller's ctx has ended. What was not sent yet never is.
func (d *desk) giveUp(e *errand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := e.batch; b == nil {
		d.line = slices.DeleteFunc(d.line, func(o *errand) bool { return o == e })
	} else if b.left--; b.left == 0 {
		b.cancel()
	}
}

// next gives the place of a call to those that wait, if any do.
func (d *desk) next() {
	d.mu.Lock()
	b := d.takeLocked()
	d.mu.Unlock()
	if b != nil {
		d.store.senders.send(d, b)
	}
}

// takeLocked makes a batch of the first in line; nil: there is none, and a call
// less is under way.
func (d *desk) takeLocked() *batch {
	n := min(len(d.line), maxInBatch)
	if n == 0 {
		d.busy--
		return nil
	}
	b := &batch{all: slices.Clone(d.line[:n]), left: n}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	d.line = slices.Delete(d.line, 0, n)
	for _, e := range b.all {
		e.batch = b
	}
	return b
}

// send makes the call of b, and of those that wait when that is over.
func (d *desk) send(p *paper, b *batch) {
	for b != nil {
		d.ask(p, b)
		b.cancel()
		d.mu.Lock()
		b = d.takeLocked()
		d.mu.Unlock()
	}
}

// ask makes the call of b and tells each its answer.
func (d *desk) ask(p *paper, b *batch) {
	s, n := d.store, len(b.all)
	if n == 1 {
		e := b.all[0]
		e.tell(d.alone(b.ctx, e.name, e.about))
		return
	}
	p.names, p.args = p.names[:0], append(p.args[:0], strconv.Itoa(n))
	for _, e := range b.all {
		p.names = append(p.names, e.name)
		p.args = append(p.args, e.about[:d.width]...)
	}
	p.keys, p.args = s.on(p.keys[:0], p.names...), s.withAll(p.names, p.args)
	answers, err := s.evalAll(b.ctx, d.script, "", n, p.keys, p.args)
	for i, e := range b.all {
		switch {
		case err == nil:
			e.tell(answers[i], nil)
		case driver.Certain(err): // the server did not run it, and perhaps for the sake of one name
			e.tell(d.alone(b.ctx, e.name, e.about))
		default:
			e.tell(rueidis.RedisMessage{}, err)
		}
	}
}

func (e *errand) tell(m rueidis.RedisMessage, err error) {
	e.answer, e.err = m, err
	e.done <- struct{}{}
}
