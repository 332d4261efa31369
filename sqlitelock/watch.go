package sqlitelock

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

// subs are this client's waiters.
type subs struct {
	mu   sync.Mutex // guards the fields below and the subs in them; and sends
	byID map[string][]*sub
	shut bool
}

// A sub is one subscription.
type sub struct {
	name  string
	ch    chan driver.Signal
	asked int64  // when the last ask was sent that may yet be refused
	token uint64 // the last grant that it was told
}

// told is a Signal whose grant ends at a moment.
type told struct {
	place uint64
	grant *driver.Grant
	until int64
}

// Watch subscribes on behalf of c.
func (s *Store) Watch(ctx context.Context, c driver.Claim) (<-chan driver.Signal, func(), error) {
	if err := driver.CheckName(c.Name); err != nil {
		return nil, nil, err
	}
	// The lookout must listen before the caller asks once more (law 28). It is
	// started on the reader's goroutine, because the disk may hang.
	if err := s.read.do(ctx, func(*tx) error { return s.look.listen() }); err != nil {
		return nil, nil, err
	}
	w := &sub{name: c.Name, ch: make(chan driver.Signal, 1), asked: s.clock.now()}
	if !s.subs.add(c.ID, w) {
		return nil, nil, driver.ErrClosed
	}
	s.look.wakeUp()
	drop := func() { s.subs.drop(c.ID, w) }
	unlink := context.AfterFunc(ctx, drop)
	return w.ch, func() { unlink(); drop() }, nil
}

func (s *subs) add(id string, w *sub) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		return false
	}
	s.byID[id] = append(s.byID[id], w)
	return true
}

func (s *subs) drop(id string, w *sub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := slices.DeleteFunc(s.byID[id], func(o *sub) bool { return o == w })
	if len(rest) > 0 {
		s.byID[id] = rest
	} else {
		delete(s.byID, id)
	}
}

func (s *subs) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	clear(s.byID)
}

// asks notes that id's owner asks, and tells whether it waits and was not told of
// a grant.
func (s *subs) asks(id string, now int64) (waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.byID[id] {
		w.asked = max(w.asked, now)
		waits = w.token == 0
	}
	return waits
}

// tell signals id's waiter.
//
// The waiter will count the grant's TTL from the send of its last ask that was
// refused (law 29), and such an ask may be later than the moment by which the
// hand-over was stamped, if the commit took its time. All processes here share one
// clock, so the TTL is cut such that it ends no later than the hand-over: the ask
// was sent no later than w.asked, and one after the hand-over is not refused.
func (s *subs) tell(id string, t told) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.byID[id] {
		sig := driver.Signal{Place: t.place}
		if t.grant != nil {
			if w.token == t.grant.Token {
				continue // told before
			}
			w.token = t.grant.Token
			if left := time.Duration(t.until - w.asked); left > 0 {
				g := *t.grant
				g.TTL = min(g.TTL, left)
				sig.Grant = &g
			}
		}
		select {
		case <-w.ch:
		default:
		}
		w.ch <- sig
	}
}

// names are those that are waited for.
func (s *subs) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := make(map[string]bool)
	for _, ws := range s.byID {
		for _, w := range ws {
			set[w.name] = true
		}
	}
	return slices.Collect(maps.Keys(set))
}

func (s *subs) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byID) == 0
}
