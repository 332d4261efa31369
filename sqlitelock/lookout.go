package sqlitelock

import (
	"context"
	sqldriver "database/sql/driver"
	"io"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

const (
	// poll is how often a lookout with file events looks all the same, and
	// pollBlind how often one without.
	poll      = 500 * time.Millisecond
	pollBlind = 200 * time.Millisecond
	// afterHint is how soon after a file event it looks again.
	afterHint = 10 * time.Millisecond
)

// A lookout is the goroutine that wakes this client's waiters. It listens for two
// file events: a touch of this client's life file, by which another client says
// that it handed something over or took it away; and the end of another client's
// hold on its life file, which may be a death. Both are hints, and the poll behind
// them finds what they miss.
type lookout struct {
	s    *Store
	kick chan struct{} // look at the waiters, and whether there are any
	dead chan struct{} // a death was seen: sweep
	gone chan struct{}

	mu    sync.Mutex // guards inbox and deaf
	inbox io.Closer  // nil: not listening
	deaf  bool       // there are no file events here
}

func newLookout(s *Store) *lookout {
	return &lookout{s: s, kick: make(chan struct{}, 1), dead: make(chan struct{}, 1), gone: make(chan struct{}), deaf: s.opts.noEvents}
}

// listen makes the life file and listens to it.
func (l *lookout) listen() error {
	if err := l.s.makeLife(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inbox != nil || l.deaf || l.s.closed() {
		return nil
	}
	client, _ := l.s.life.owner()
	if l.s.opts.bell != nil {
		l.inbox = l.s.opts.bell.listen(client, l.wakeUp)
		return nil
	}
	in, err := newInbox(l.s.life, client, l.wakeUp)
	if err != nil { // such as too many inotify instances: then the poll has to do
		l.deaf = true
		return nil
	}
	l.inbox = in
	return nil
}

// wakeUp makes the lookout look now.
func (l *lookout) wakeUp() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// sawDeath makes the lookout clear away what the dead have left.
func (l *lookout) sawDeath() {
	select {
	case l.dead <- struct{}{}:
	default:
	}
}

// run looks until the store is closed.
func (l *lookout) run() {
	defer close(l.gone)
	defer l.hush()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() { // until run ends
		select {
		case <-l.s.stop:
			cancel(driver.ErrClosed)
		case <-ctx.Done():
		}
	}()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	tick := time.NewTimer(0)
	defer tick.Stop()
	again := 0 // looks that follow a hint soon
	for {
		select {
		case <-l.s.stop:
			return
		case <-sweep.C:
			l.sweep(ctx)
		case <-l.dead:
			l.sweep(ctx)
		case <-l.kick:
			again = 2
			l.look(ctx)
		case <-tick.C:
			l.look(ctx)
		}
		switch {
		case l.idle():
			tick.Stop()
		case again > 0:
			// The kernel tells that a life file was let go a moment before it
			// lets go of its lock.
			again--
			tick.Reset(afterHint)
		default:
			tick.Reset(l.pause())
		}
	}
}

func (l *lookout) idle() bool { return l.s.subs.none() && l.s.feeds.none() }

func (l *lookout) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inbox == nil {
		return pollBlind
	}
	return poll
}

func (l *lookout) hush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inbox != nil {
		_ = l.inbox.Close()
		l.inbox = nil
	}
}

// look tells the waiters what the file says, and moves on the names whose time,
// or whose holder, has come to an end. What fails is tried again by the poll.
func (l *lookout) look(ctx context.Context) {
	if l.idle() {
		return
	}
	names := l.s.subs.names()
	var due []string
	err := l.s.read.do(ctx, func(t *tx) error {
		if err := t.readNews(); err != nil {
			return err
		}
		for _, key := range names {
			n, err := t.load(key)
			if err != nil {
				return err
			}
			if !n.quiet(&t.step) {
				due = append(due, key)
			}
		}
		return nil
	})
	if err == nil && len(due) > 0 {
		_ = l.settle(ctx, due)
	}
}

// settle ends what has ended on the names and lets in who waits for it.
func (l *lookout) settle(ctx context.Context, keys []string) error {
	return l.s.write.do(ctx, func(t *tx) error {
		for _, key := range keys {
			n, err := t.load(key)
			if err != nil {
				return err
			}
			n.end(&t.step)
			n.collect(&t.step)
			n.promote(&t.step)
		}
		return nil
	})
}

// readNews tells this client's waiters and holders what other clients did.
func (t *tx) readNews() error {
	if t.client == 0 {
		return nil
	}
	var lost []driver.Loss
	err := t.each("news", func(row []sqldriver.Value) bool {
		r := scanRow(row[1:])
		name, _ := row[0].(string)
		switch {
		case r.state == driver.Revoked:
			lost = append(lost, driver.Loss{Name: name, ID: r.id, Err: driver.ErrRevoked})
		case r.state == driver.Handed:
			if r.domain == t.domain && r.until > t.now {
				t.s.subs.tell(r.id, news{row: r, name: name, granted: true}.signal(t.s))
			}
		case r.state != driver.Kept || r.has(flagDied):
			lost = append(lost, driver.Loss{Name: name, ID: r.id, Err: &driver.NotHeldError{Name: name}})
		}
		return true
	}, t.client)
	if err != nil {
		return err
	}
	t.s.feeds.tellAll(lost)
	return nil
}
