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
	work chan sending // capacity 1
	paper
}

// A sending is the first call that a sender makes at a desk.
type sending struct {
	desk  *desk
	batch *batch
}

// send has b sent, and what waits at d when that is over.
func (p *senders) send(d *desk, b *batch) {
	p.mu.Lock()
	var s *sender
	if n := len(p.idle); n > 0 {
		s, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if s == nil {
		s = &sender{work: make(chan sending, 1)}
		go p.run(s) // ends when it is not needed, or the client is closed
	}
	s.work <- sending{d, b}
}

func (p *senders) run(s *sender) {
	for {
		select {
		case w := <-s.work:
			w.desk.send(&s.paper, w.batch)
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
