package memlock

import (
	"context"
	"sync"

	"github.com/dibslock/dibs/driver"
)

// subscriber is whom a signal is for.
type subscriber struct{ name, id string }

// signal is a subscription.
type signal struct {
	client *Store
	ch     chan driver.Signal // capacity 1
}

// send replaces what was not read. Only holders of the memory's mutex send, so
// that it never blocks.
func (g *signal) send(s driver.Signal) {
	select {
	case <-g.ch:
	default:
	}
	g.ch <- s
}

// Watch subscribes on behalf of c. A later Watch with the same name and ID takes
// the place of this one.
func (s *Store) Watch(ctx context.Context, c driver.Claim) (<-chan driver.Signal, func(), error) {
	if err := driver.CheckName(c.Name); err != nil {
		return nil, nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer s.m.mu.Unlock()
	sub := subscriber{c.Name, c.ID}
	if old := s.m.subs[sub]; old != nil {
		old.client.unsubscribeLocked(sub, old)
	}
	g := &signal{s, make(chan driver.Signal, 1)}
	s.m.subs[sub], s.subs[sub] = g, g
	unsubscribe := func() {
		s.m.mu.Lock()
		defer s.m.mu.Unlock()
		s.unsubscribeLocked(sub, g)
	}
	unbind := context.AfterFunc(ctx, unsubscribe)
	stop := sync.OnceFunc(func() {
		unbind()
		unsubscribe()
	})
	return g.ch, stop, nil
}

// unsubscribeLocked ends g, unless a later one has taken its place.
func (s *Store) unsubscribeLocked(sub subscriber, g *signal) {
	if s.m.subs[sub] == g {
		delete(s.m.subs, sub)
		delete(s.subs, sub)
	}
}

// signalLocked tells the waiter of p.
func (m *memory) signalLocked(p *place, sig driver.Signal) {
	if g := m.subs[subscriber{p.Name, p.ID}]; g != nil {
		g.send(sig)
	}
}
