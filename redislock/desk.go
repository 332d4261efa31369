package redislock

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/dibslock/dibs/driver"
)

// A desk takes calls of one script, which asks about many claims as well as about
// one. A caller lets all goroutines run that can, and then what those want goes with
// it, as one call, or sooner if that is enough; if nobody wants anything it sends its
// own call itself. Only if several are under way does it wait for one of them. So a
// client of one goroutine pays next to nothing for the desk, and in one of many the
// server runs a script for dozens of claims: that costs each of them a fraction, and
// less the busier both are.
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
	enough     = 24 // claims that are worth a call: no more are waited for
	maxInBatch = 64 // claims in one call: the server does nothing else meanwhile
)

// An errand is a call about one claim, which may wait for others. It does not keep
// its caller's ctx, which another call may have once that one has left.
type errand struct {
	name   string
	key    string    // of the name's state
	about  [3]string // a script's arguments about the claim, as many as that wants
	text   packer    // what key and about are in
	answer rueidis.RedisMessage
	err    error
	done   chan struct{} // capacity 1
	batch  *batch        // nil: still in line
}

// newErrand makes an errand about a claim on name.
func (s *Store) newErrand(name string) *errand {
	e := errands.Get().(*errand)
	e.name = name
	e.key = e.add(s.keys.append(e.text, name))
	return e
}

var errands = sync.Pool{New: func() any {
	return &errand{text: make(packer, 0, 512), done: make(chan struct{}, 1)}
}}

// add makes text, which is e.text and more, that of e, and returns what is more.
func (e *errand) add(text packer) string {
	from := len(e.text)
	e.text = text
	return rueidis.BinaryString(text[from:])
}

// over ends e, whose call has returned err. Of a call that may yet be sent, nothing
// is used again.
func (e *errand) over(err error) {
	if err == nil || driver.Certain(err) {
		*e = errand{text: e.text[:0], done: e.done}
		errands.Put(e)
	}
}

// A batch is some errands under way in one call, of which it is the context: that
// ends when nobody waits for it any more.
type batch struct {
	left int // how many still wait for it; guarded by the desk's lock
	done chan struct{}
}

func (b *batch) Deadline() (time.Time, bool) { return time.Time{}, false }
func (b *batch) Done() <-chan struct{}       { return b.done }
func (b *batch) Value(any) any               { return nil }

func (b *batch) Err() error {
	select {
	case <-b.done:
		return context.Canceled
	default:
		return nil
	}
}

// call makes the call of e.
func (d *desk) call(ctx context.Context, e *errand) (m rueidis.RedisMessage, err error) {
	if err := d.store.enter(ctx); err != nil {
		return m, err
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
			m, err := d.alone(ctx, e)
			d.next()
			e.over(err)
			return m, err
		}
	}
	d.line = append(d.line, e)
	sends := leads
	if !leads && len(d.line) >= enough && d.busy < lanes {
		d.busy++
		sends = true
	}
	d.mu.Unlock()
	if sends {
		d.store.senders.send(d)
	}
	select {
	case <-e.done:
		m, err = e.answer, e.err
		e.over(err)
		return m, err
	case <-ctx.Done():
		d.giveUp(e)
		return m, d.store.failed(ctx, e.name, ctx.Err())
	}
}

// alone is a call about one claim.
func (d *desk) alone(ctx context.Context, e *errand) (rueidis.RedisMessage, error) {
	s, p := d.store, papers.Get().(*paper)
	p.keys = append(p.keys[:0], s.keys.mark, e.key)
	p.keys = s.beside(p.keys, e.name)
	p.args = s.with(e.name, append(append(p.args[:0], "1"), e.about[:d.width+d.lone]...)...)
	m, err := s.eval(ctx, d.script, e.name, p.keys, p.args)
	papers.Put(p) // what was sent is a copy
	return m, err
}

// A paper is what a call is written on.
type paper struct {
	all               []*errand
	names, keys, args []string
}

var papers = sync.Pool{New: func() any { return new(paper) }}

// giveUp leaves e, whose caller's ctx has ended. What was not sent yet never is.
func (d *desk) giveUp(e *errand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := e.batch; b == nil {
		d.line = slices.DeleteFunc(d.line, func(o *errand) bool { return o == e })
	} else if b.left--; b.left == 0 {
		close(b.done)
	}
}

// next gives the place of a call to those that wait, if any do.
func (d *desk) next() {
	d.mu.Lock()
	some := len(d.line) > 0
	if !some {
		d.busy--
	}
	d.mu.Unlock()
	if some {
		d.store.senders.send(d)
	}
}

// take makes a batch of the first in line; nil: there is none, and a call less is
// under way.
func (d *desk) take(p *paper) *batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := min(len(d.line), maxInBatch)
	if n == 0 {
		d.busy--
		return nil
	}
	b := &batch{left: n, done: make(chan struct{})}
	p.all = append(p.all[:0], d.line[:n]...)
	d.line = slices.Delete(d.line, 0, n)
	for _, e := range p.all {
		e.batch = b
	}
	return b
}

// send makes the call of those that wait, and of those that do when that is over.
func (d *desk) send(p *paper) {
	for b := d.take(p); b != nil; b = d.take(p) {
		d.ask(p, b)
	}
}

// ask makes the call of b and tells each its answer.
func (d *desk) ask(p *paper, b *batch) {
	s, n := d.store, len(p.all)
	if n == 1 {
		e := p.all[0]
		e.tell(d.alone(b, e))
		return
	}
	p.names, p.keys, p.args = p.names[:0], append(p.keys[:0], s.keys.mark), append(p.args[:0], strconv.Itoa(n))
	for _, e := range p.all {
		p.names, p.keys, p.args = append(p.names, e.name), append(p.keys, e.key), append(p.args, e.about[:d.width]...)
	}
	p.keys, p.args = s.beside(p.keys, p.names...), s.withAll(p.names, p.args)
	answers, err := s.evalAll(b, d.script, "", n, p.keys, p.args)
	for i, e := range p.all {
		switch {
		case err == nil:
			e.tell(answers[i], nil)
		case driver.Certain(err): // the server did not run it, and perhaps for the sake of one name
			e.tell(d.alone(b, e))
		default:
			e.tell(rueidis.RedisMessage{}, err)
		}
	}
}

func (e *errand) tell(m rueidis.RedisMessage, err error) {
	e.answer, e.err = m, err
	e.done <- struct{}{}
}
