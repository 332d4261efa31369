package redislock

import (
	"context"
	"sync"

	"github.com/dibslock/dibs/driver"
)

// subscriber is whom a signal is for.
type subscriber struct{ name, id string }

// signal is a subscription.
type signal struct {
	ch chan driver.Signal // capacity 1
}

// send replaces what was not read. Only holders of the inbox's mutex send, so
// that it never blocks.
func (g *signal) send(s driver.Signal) {
	select {
	case <-g.ch:
	default:
	}
	g.ch <- s
}

// Watch subscribes on behalf of c. A later Watch with the same name and ID takes
// the place of this one. It costs the server nothing once the client has its
// channel.
func (s *Store) Watch(ctx context.Context, c driver.Claim) (<-chan driver.Signal, func(), error) {
	if err := driver.CheckName(c.Name); err != nil {
		return nil, nil, err
	}
	if err := s.enter(ctx); err != nil {
		return nil, nil, err
	}
	b, sub, g := s.inbox, subscriber{c.Name, c.ID}, &signal{make(chan driver.Signal, 1)}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil, nil, errClosed
	}
	b.subs[sub] = g // before we know that the server has subscribed us, so that nothing is missed
	b.mu.Unlock()
	unsubscribe := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.subs[sub] == g { // no later one has taken its place
			delete(b.subs, sub)
		}
	}
	conn, err := s.listen(ctx, c.Name)
	if err != nil {
		unsubscribe()
		return nil, nil, err
	}
	conn.waits.Store(true)
	unbind := context.AfterFunc(ctx, unsubscribe)
	stop := sync.OnceFunc(func() {
		unbind()
		unsubscribe()
	})
	return g.ch, stop, nil
}

// listen returns the present connection when it is subscribed.
func (s *Store) listen(ctx context.Context, name string) (*conn, error) {
	for {
		conn, err := s.link.get(ctx)
		if err == nil {
			err = s.inbox.listen(ctx, conn)
		}
		if err == errGone && ctx.Err() == nil && s.enter(ctx) == nil {
			continue // the next connection is subscribed from its start
		}
		if err != nil {
			return nil, s.failed(ctx, name, err)
		}
		return conn, nil
	}
}
