package pglock

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/dibslock/dibs/driver"
)

const (
	// heartbeat is how often a session that is idle is looked after.
	heartbeat = 5 * time.Second
	// linger is how long a session waits for another request before it sits down
	// to read, which costs more to be roused from.
	linger = time.Millisecond
)

// A warden owns a session and all locks on it. One goroutine at a time uses the
// session: the warden's own, or a caller's, for its own request, while nobody else
// asks for anything (see serveSelf). No caller's ctx reaches it: pgx closes a
// connection whose ctx ends, so that one impatient caller would end everybody's
// locks. While nothing is asked the warden sits in a read, so that it hears at once
// when the server ends the session.
type warden struct {
	a    *Advisory
	dial *dialer
	work sync.WaitGroup
	more chan struct{} // capacity 1: there is something for the goroutine
	idle *time.Timer   // of linger: one for all, for a new one has to be told to the scheduler's poller

	mu     sync.Mutex // guards all below, and what requests say it does
	queue  []*request
	reads  net.Conn // that the goroutine sits in a read of; nil: it does not
	closed bool
	taken  bool   // somebody uses the session
	over   *round // what a caller had no time for; it leaves the session taken
	served int    // how many requests callers have served themselves

	// Of whoever has taken the session.
	s     *session // nil: not connected
	birth string   // when the backend began
	held  map[key]*lock
	seen  bool          // the session shows that somebody waits: see the statement see
	least time.Duration // the shortest TTL since there was nothing held
	grave grave
	watch watchdog
}

func newWarden(a *Advisory, hears bool) *warden {
	w := &warden{a: a, more: make(chan struct{}, 1), held: make(map[key]*lock)}
	d := *a.dial
	w.dial = &d
	w.idle = time.NewTimer(linger)
	if hears {
		w.dial.hear = func(n *pgconn.Notification) {
			if n.Channel == askChannel {
				a.clerk.hear(n.Payload, n.PID)
			} else if k, ok := parseKey(n.Payload); ok && n.Channel == a.channel {
				a.tell(k)
			}
		}
	}
	w.work.Go(w.run) // until the store is closed
	return w
}

// do asks for r and waits for its answer.
func (w *warden) do(ctx context.Context, r *request) result {
	if ctx.Err() != nil {
		return result{err: left(ctx)}
	}
	if r.kind != requestHear && w.take() { // after that one, the warden has to hear at once
		w.serveSelf(r)
	} else if err := w.submit(r); err != nil {
		return result{err: err}
	}
	return r.await(ctx)
}

// take takes the session for a caller, if it is there, and nobody else wants it.
func (w *warden) take() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.taken || len(w.queue) > 0 || w.s == nil {
		return false
	}
	w.taken = true
	w.served++
	return true
}

// serveSelf serves a caller's own request on the caller's goroutine. What takes
// longer than a moment, and whatever is not usual, it leaves to the warden's.
func (w *warden) serveSelf(q *request) {
	q.w, q.done = w, make(chan struct{})
	r := w.round(q)
	quick := r.trip.quick()
	if quick {
		r.settle(nil)
	}
	w.mu.Lock()
	if quick {
		w.taken = false
		w.queue = slices.Concat(r.later, r.unheard, w.queue)
	} else {
		w.over = r
	}
	ring := !quick || len(w.queue) > 0
	w.mu.Unlock()
	if ring {
		w.ring()
	}
}

// ring tells the goroutine that there is something for it.
func (w *warden) ring() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *warden) submit(r *request) error {
	r.w, r.done = w, make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return driver.ErrClosed
	}
	w.queue = append(w.queue, r)
	if w.reads != nil {
		_ = w.reads.SetReadDeadline(longAgo)
		w.reads = nil
	}
	w.ring()
	return nil
}

// close answers what is queued and waits for the goroutine.
func (w *warden) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.work.Wait()
}

func (w *warden) run() {
	for w.a.life.Err() == nil {
		rs, over, ok := w.claim()
		switch {
		case !ok:
			w.linger() // a caller has the session, and rings if there is something to do
			continue
		case over != nil:
			over.settle(over.trip.ask())
			w.serve(slices.Concat(over.later, over.unheard))
		case len(rs) > 0:
			w.attend(rs)
		default:
			w.rest()
			continue
		}
		w.free()
	}
	w.end()
}

// claim takes the session for the goroutine, with what there is to do: requests, or
// a round that a caller has left.
func (w *warden) claim() (rs []*request, over *round, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if over := w.over; over != nil {
		w.over = nil
		return nil, over, true
	}
	if w.taken {
		return nil, nil, false
	}
	w.taken = true
	rs, w.queue = w.queue, nil
	return rs, nil, true
}

func (w *warden) free() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = false
}

// attend serves rs, and connects first if need be.
func (w *warden) attend(rs []*request) {
	if w.s == nil {
		if err := w.connect(); err != nil {
			for _, r := range rs {
				w.refuse(r, err)
			}
			return
		}
	}
	w.serve(rs)
}

// end ends the session, once no caller uses it any more.
func (w *warden) end() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	for {
		rs, over, ok := w.claim()
		if over != nil {
			over.settle(driver.ErrClosed)
			rs = slices.Concat(over.later, over.unheard)
		}
		for _, r := range rs {
			r.answer(result{err: driver.ErrClosed})
		}
		if ok {
			break
		}
		w.idle.Reset(linger)
		<-w.idle.C
	}
	w.idle.Stop()
	w.watch.stop()
	if w.s != nil {
		w.s.bye()
	}
}

// refuse answers r while there is no session. Whatever was held is gone, and was
// told as lost; that the server has let it go is not certain before a new session
// has buried the old one.
func (w *warden) refuse(r *request, err error) {
	if driver.Certain(err) && (r.kind == requestProve || r.kind == requestUnlock) {
		err = unknown(err)
	}
	r.answer(result{err: err})
}

// rest waits for something to do. It gives the session free before it returns.
func (w *warden) rest() {
	if w.s == nil {
		w.free()
		select {
		case <-w.more:
		case <-w.a.life.Done():
		}
		return
	}
	waited := w.dial.hear != nil && w.a.waited()
	if !waited { // else it reads at once, for news is heard only there
		if !w.stays() {
			return
		}
		if w.seen {
			w.serve([]*request{{kind: requestHear, w: w, done: make(chan struct{})}})
		}
	}
	if w.s != nil {
		w.read()
	}
	w.free()
}

// stays gives the session free for a while, and takes it again if nobody has used it
// meanwhile.
func (w *warden) stays() bool {
	w.mu.Lock()
	w.taken = false
	served := w.served
	w.mu.Unlock()
	if !w.linger() {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taken || len(w.queue) > 0 || w.served != served {
		return false
	}
	w.taken = true
	return true
}

// linger waits a while, and tells whether nothing has happened.
func (w *warden) linger() bool {
	w.idle.Reset(linger)
	select {
	case <-w.more:
	case <-w.a.life.Done():
	case <-w.idle.C:
		return true
	}
	return false
}

// read sits in a read of the connection until it is roused by a request, hears
// something, or it is time to see whether the server is still there.
func (w *warden) read() {
	w.mu.Lock()
	if len(w.queue) > 0 {
		w.mu.Unlock()
		return
	}
	late := time.Now().Add(heartbeat)
	w.reads = w.s.raw
	_ = w.reads.SetReadDeadline(late)
	w.mu.Unlock()
	err := w.s.PgConn().WaitForNotification(w.a.life)
	w.mu.Lock()
	w.reads = nil
	_ = w.s.raw.SetReadDeadline(time.Time{})
	asked := len(w.queue) > 0
	w.mu.Unlock()
	switch {
	case w.s.IsClosed():
		w.die(err)
	case !asked && !time.Now().Before(late):
		w.serve([]*request{{kind: requestPing, w: w, done: make(chan struct{})}})
	}
}

// slice is how often the goroutine, while it waits for the server, looks whether
// the store was closed.
const slice = 250 * time.Millisecond

// errSilent says that the server has not answered for too long.
var errSilent = errors.New("the server does not answer")

// await waits for the answer to x, as long as the server may be silent.
func (w *warden) await(x *exchange) error {
	for late := time.Now().Add(w.limit()); !x.hear(time.Now().Add(slice)); {
		if w.a.life.Err() != nil {
			return driver.ErrClosed
		}
		if time.Now().After(late) {
			return errSilent
		}
	}
	return nil
}

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)
