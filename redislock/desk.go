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
// one. A caller that comes while no other is under way sends its call itself, at
// once. One that comes meanwhile lets all goroutines run that can, and then what
// those want goes with it, as one call; only if several are under way does it wait
// for one of them. So a client of one goroutine pays nothing for the desk, and in
// one of many the server runs a script for dozens of claims: that costs each of
// them a fraction, and less the busier both are.
//
// No claim depends on another of its batch: each has an answer of its own, a call
// that was rejected as a whole is repeated for each by itself, and whoever gives
// up leaves the others alone.
type desk struct {
	store  *Store
	script *script
	width  int // how many arguments the script wants about a claim

	mu   sync.Mutex // guards what follows, and every errand
	busy int        // calls under way
	line []*errand  // those that wait
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
	left   int // how many still wait for it
	cancel context.CancelFunc
}

var errands = sync.Pool{New: func() any { return &errand{done: make(chan struct{}, 1)} }}

// call asks about one claim on name.
func (d *desk) call(ctx context.Context, name string, a about) (rueidis.RedisMessage, error) {
	if err := d.store.enter(ctx); err != nil {
		return rueidis.RedisMessage{}, err
	}
	d.mu.Lock()
	leads := d.busy < lanes
	if leads {
		d.busy++
		if d.busy == 1 {
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
		runtime.Gosched() // who can run now may want to go with it
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
	p.args = s.with(name, append(append(p.args[:0], "1"), a[:d.width]...)...)
	m, err := s.eval(ctx, d.script, name, p.keys, p.args)
	papers.Put(p) // what was sent is a copy
	return m, err
}

// A paper is what a call about one claim is written on.
type paper struct{ keys, args []string }

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
	b, ctx := d.takeLocked()
	d.mu.Unlock()
	if b != nil {
		go d.send(ctx, b) // ends with the line, and each call in it with its callers' contexts
	}
}

// takeLocked makes a batch of the first in line; nil: there is none, and a call
// less is under way.
func (d *desk) takeLocked() (*batch, context.Context) {
	n := min(len(d.line), maxInBatch)
	if n == 0 {
		d.busy--
		return nil, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &batch{all: slices.Clone(d.line[:n]), left: n, cancel: cancel}
	d.line = slices.Delete(d.line, 0, n)
	for _, e := range b.all {
		e.batch = b
	}
	return b, ctx
}

// send makes the call of b, and of those that wait when that is over.
func (d *desk) send(ctx context.Context, b *batch) {
	for b != nil {
		d.ask(ctx, b)
		b.cancel()
		d.mu.Lock()
		b, ctx = d.takeLocked()
		d.mu.Unlock()
	}
}

// ask makes the call of b and tells each its answer.
func (d *desk) ask(ctx context.Context, b *batch) {
	s, n := d.store, len(b.all)
	names := make([]string, n)
	args := append(make([]string, 0, (d.width+1)*n+1), strconv.Itoa(n))
	for i, e := range b.all {
		names[i] = e.name
		args = append(args, e.about[:d.width]...)
	}
	if n == 1 {
		m, err := s.eval(ctx, d.script, names[0], s.on(nil, names...), s.withAll(names, args))
		b.all[0].tell(m, err)
		return
	}
	answers, err := s.evalAll(ctx, d.script, "", n, s.on(nil, names...), s.withAll(names, args))
	for i, e := range b.all {
		switch {
		case err == nil:
			e.tell(answers[i], nil)
		case driver.Certain(err): // the server did not run it, and perhaps for the sake of one name
			e.tell(d.alone(ctx, e.name, e.about))
		default:
			e.tell(rueidis.RedisMessage{}, err)
		}
	}
}

func (e *errand) tell(m rueidis.RedisMessage, err error) {
	e.answer, e.err = m, err
	e.done <- struct{}{}
}
