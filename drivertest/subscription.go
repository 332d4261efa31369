package drivertest

import (
	"context"
	"sync"
	"time"

	"github.com/dibslock/dibs/driver"
)

// A subscription carries signals over the link while it is whole.
type subscription struct {
	out  chan driver.Signal
	mu   sync.Mutex // guards down, and sends on out
	down bool
}

// follow carries v's signals over the link until v is stopped or ctx ends.
func (l *LocalLink) follow(ctx context.Context, v watched) watched {
	s := &subscription{out: make(chan driver.Signal, 1)}
	l.mu.Lock()
	s.down = l.fault != Pass
	l.feeds[s] = struct{}{}
	l.mu.Unlock()
	done := make(chan struct{})
	gone := make(chan struct{})
	go func() { // ends by stop and by ctx
		defer close(gone)
		defer l.forget(s)
		for signals := v.signals; ; {
			select {
			case sig, ok := <-signals:
				switch {
				case !ok:
					signals = nil
				case l.carry(done):
					s.pass(sig)
				}
			case <-ctx.Done():
				return
			case <-done:
				return
			}
		}
	}()
	var once sync.Once
	return watched{s.out, func() {
		once.Do(func() { close(done) })
		<-gone
		v.stop()
	}}
}

// forget ends the link's knowledge of s.
func (l *LocalLink) forget(s *subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.feeds, s)
}

// carry takes as long as an answer does on the link, and tells whether the
// subscription is still there.
func (l *LocalLink) carry(done <-chan struct{}) bool {
	l.mu.Lock()
	reply := l.reply
	l.mu.Unlock()
	if reply <= 0 {
		return true
	}
	t := time.NewTimer(reply)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}

// pass sends sig on, in the place of one that was not read, unless the link is
// down.
func (s *subscription) pass(sig driver.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return
	}
	select {
	case <-s.out:
	default:
	}
	s.out <- sig
}

// cut takes the subscription down or up; healed tells that it was down.
func (s *subscription) cut(down, healed bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if healed {
		s.pass(driver.Signal{})
	}
}
