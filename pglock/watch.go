package pglock

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

// maxLosses is how many losses a feed holds; more are not reported.
const maxLosses = 256

// maxAsked is of how many waiters it is known when they were refused last.
const maxAsked = 10_000

// subs are this client's waiters, its holders and the readers of its losses.
type subs struct {
	mu    sync.Mutex // guards all below, and sends
	byID  map[digest][]*sub
	mine  map[digest]driver.Loss // the claims that this client's callers hold
	asked map[digest]int64       // when, by the server, waiters' asks were refused last
	feeds map[chan driver.Loss]bool
	shut  bool
}

// A sub is one subscription.
type sub struct {
	name  string
	ch    chan driver.Signal // capacity 1
	token uint64             // of the last grant that it was told
}

func newSubs() *subs {
	return &subs{byID: make(map[digest][]*sub), mine: make(map[digest]driver.Loss), asked: make(map[digest]int64), feeds: make(map[chan driver.Loss]bool)}
}

// Watch subscribes on behalf of c.
func (t *Table) Watch(ctx context.Context, c driver.Claim) (<-chan driver.Signal, func(), error) {
	if err := driver.CheckName(c.Name); err != nil {
		return nil, nil, err
	}
	if ctx.Err() != nil {
		return nil, nil, left(ctx)
	}
	w, id := &sub{name: c.Name, ch: make(chan driver.Signal, 1)}, digestOf(c.ID)
	if !t.subs.add(id, w) {
		return nil, nil, driver.ErrClosed
	}
	drop := func() { t.subs.drop(id, w) }
	if err := t.ear.listen(ctx); err != nil {
		drop()
		return nil, nil, err
	}
	unbind := context.AfterFunc(ctx, drop)
	return w.ch, func() { unbind(); drop() }, nil
}

// Losses reports claims of this client that were revoked, or whose expiry somebody
// noticed, until ctx ends.
func (t *Table) Losses(ctx context.Context) (<-chan driver.Loss, error) {
	if ctx.Err() != nil {
		return nil, left(ctx)
	}
	if err := t.ear.listen(ctx); err != nil {
		return nil, err
	}
	return t.subs.feed(ctx)
}

// feed is a new reader of losses, until ctx ends.
func (s *subs) feed(ctx context.Context) (<-chan driver.Loss, error) {
	ch := make(chan driver.Loss, maxLosses)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return nil, driver.ErrClosed
	}
	s.feeds[ch] = true
	context.AfterFunc(ctx, func() { s.endFeed(ch) })
	return ch, nil
}

func (s *subs) endFeed(ch chan driver.Loss) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.feeds[ch] {
		delete(s.feeds, ch)
		close(ch)
	}
}

func (s *subs) add(id digest, w *sub) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return false
	}
	s.byID[id] = append(s.byID[id], w)
	return true
}

func (s *subs) drop(id digest, w *sub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := slices.DeleteFunc(s.byID[id], func(o *sub) bool { return o == w })
	if len(rest) > 0 {
		s.byID[id] = rest
	} else {
		delete(s.byID, id)
	}
}

// waits tells whether somebody waits here with this ID.
func (s *subs) waits(id digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID[id]) > 0
}

// looksFor are the names that are waited for, and, if anybody wants to hear of
// losses, the claims that are held and their names.
func (s *subs) looksFor() (names []string, mine []digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := make(map[string]bool)
	for _, ws := range s.byID {
		for _, w := range ws {
			set[w.name] = true
		}
	}
	if len(s.feeds) > 0 {
		for id, l := range s.mine {
			set[l.Name] = true
			mine = append(mine, id)
		}
	}
	return slices.Collect(maps.Keys(set)), mine
}

// note remembers whether c is held by a caller of this client, who is to be told
// of its loss.
func (s *subs) note(c driver.Claim, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held {
		delete(s.asked, digestOf(c.ID))
		s.mine[digestOf(c.ID)] = driver.Loss{Name: c.Name, ID: c.ID}
	} else {
		delete(s.mine, digestOf(c.ID))
	}
}

// refused notes that the server refused the waiter c at its moment now. A waiter
// trusts what it is handed from the send of its last ask on, because the hand-over
// came later; but it was worked out a little before it was done, and the ask may
// have come between. So what is told is cut to what is left from that ask on.
func (s *subs) refused(c driver.Claim, now int64) {
	id := digestOf(c.ID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) >= maxAsked {
		clear(s.asked) // whoever is told without a grant asks
	}
	s.asked[id] = max(s.asked[id], now)
	for _, w := range s.byID[id] {
		select {
		case sig := <-w.ch: // it was cut by an earlier ask
			sig.Grant = nil
			w.ch <- sig
		default:
		}
	}
}

// forget drops what was noted of the waiter c.
func (s *subs) forget(c driver.Claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, digestOf(c.ID))
}

// leftLocked is for how long the waiter with this ID may trust what it was handed, from
// its last ask on; 0: it has to ask.
func (s *subs) leftLocked(id digest, x news) time.Duration {
	asked, ok := s.asked[id]
	if !ok || x.until <= asked {
		return 0
	}
	return min(x.grant.TTL, span(x.until-asked))
}

// tell brings news to whom it concerns, if that is here.
func (s *subs) tell(id digest, x news) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch x.kind {
	case newsEnded, newsRevoked:
		s.loseLocked(id, x)
	case newsHanded, newsAsk:
		for _, w := range s.byID[id] {
			sig := driver.Signal{Place: uint64(x.place)}
			if x.kind == newsHanded {
				if w.token == x.grant.Token {
					continue // told before
				}
				w.token = x.grant.Token
				if ttl := s.leftLocked(id, x); ttl > 0 {
					sig.Grant = new(x.grant)
					sig.Grant.TTL = ttl
				}
			}
			w.send(sig)
		}
	}
}

func (s *subs) loseLocked(id digest, x news) {
	l, ok := s.mine[id]
	if !ok {
		return
	}
	delete(s.mine, id)
	l.Err = driver.ErrRevoked
	if x.kind == newsEnded {
		l.Err = &driver.NotHeldError{Name: l.Name}
	}
	for ch := range s.feeds {
		select {
		case ch <- l:
		default: // its reader is far behind, and finds out by Renew
		}
	}
}

// send replaces what was not read. Senders hold the mutex, so it never blocks.
func (w *sub) send(sig driver.Signal) {
	select {
	case <-w.ch:
	default:
	}
	w.ch <- sig
}

// ask tells all waiters to ask again: something may have been missed.
func (s *subs) ask() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ws := range s.byID {
		for _, w := range ws {
			select {
			case w.ch <- driver.Signal{}:
			default: // what is there already makes it ask as well
			}
		}
	}
}

// close ends all subscriptions; a waiter asks, and hears ErrClosed.
func (s *subs) close() {
	s.ask()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	clear(s.byID)
	for ch := range s.feeds {
		delete(s.feeds, ch)
		close(ch)
	}
}
