package redislock

import (
	"slices"
	"sync"
)

// senders are the goroutines that make the calls of a client's desks. They are kept
// when they have nothing to do, a few of them, until the client is closed: a new one
// for each call would have to grow its stack every time.
type senders struct {
	closed <-chan struct{}

	mu   sync.Mutex // guards what follows
	idle []*sender
}

// maxIdle is how many senders without a call are kept: both desks of a busy client
// have as many as they need.
const maxIdle = 2 * lanes

// A sender makes calls, one after the other.
type sender struct {
	work chan *desk // capacity 1
	paper
}

// send has what waits at d sent.
func (p *senders) send(d *desk) {
	p.mu.Lock()
	var s *sender
	if n := len(p.idle); n > 0 {
		s, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if s == nil {
		s = &sender{work: make(chan *desk, 1)}
		go p.run(s) // ends when it is not needed, or the client is closed
	}
	s.work <- d
}

func (p *senders) run(s *sender) {
	for {
		select {
		case d := <-s.work:
			d.send(&s.paper)
			if !p.keep(s) {
				return
			}
		case <-p.closed:
			if p.leave(s) {
				return
			} // else it was given work just now
		}
	}
}

// keep makes s idle. It tells false if there are enough of them.
func (p *senders) keep(s *sender) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= maxIdle {
		return false
	}
	p.idle = append(p.idle, s)
	return true
}

// leave takes s out of those that are idle. It tells whether it was one.
func (p *senders) leave(s *sender) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	p.idle = slices.DeleteFunc(p.idle, func(o *sender) bool { return o == s })
	return len(p.idle) < n
}
