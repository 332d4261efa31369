package proxy

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
)

// Proxy forwards connections to a target and breaks them as its [Mode] says.
// Its methods may be called from any goroutine.
type Proxy struct {
	target   string
	listener net.Listener
	work     sync.WaitGroup // the goroutines of the proxy and its links

	mu      sync.Mutex // guards all below, and the state of links
	mode    Mode
	epoch   int           // counts the calls of Set
	changed chan struct{} // closed and replaced when the mode or the stats change
	stats   Stats
	links   map[*link]bool
	closed  bool
}

// New starts a proxy to a target, given as host and port, on a free loopback
// port. It passes everything until [Proxy.Set] is called, and is closed when
// the test ends.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("proxy: listen: %v", err)
	}
	p := &Proxy{
		target:   target,
		listener: l,
		changed:  make(chan struct{}),
		links:    map[*link]bool{},
	}
	p.work.Go(p.accept) // ends when Close closes the listener
	t.Cleanup(p.Close)
	return p
}

// Addr returns the host and port that clients dial.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set changes the mode of all connections, present and future.
func (p *Proxy) Set(m Mode) {
	p.mu.Lock()
	holed := p.setLocked(m)
	p.mu.Unlock()
	for _, l := range holed {
		l.reset()
	}
}

// Heal is Set(Pass).
func (p *Proxy) Heal() { p.Set(Pass) }

// Mode returns the mode that holds now.
func (p *Proxy) Mode() Mode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode
}

// CutAll resets all connections, on both sides, and returns when that is done.
// Bytes that the proxy holds are lost. The mode stays.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	all := make([]*link, 0, len(p.links))
	for l := range p.links {
		all = append(all, l)
	}
	p.mu.Unlock()
	for _, l := range all {
		l.reset()
	}
	for _, l := range all {
		<-l.done
	}
}

// Stats returns what the proxy has counted so far.
func (p *Proxy) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Wait returns nil as soon as the condition holds for the stats, or an error
// with the stats when the ctx ends.
func (p *Proxy) Wait(ctx context.Context, condition func(Stats) bool) error {
	for {
		p.mu.Lock()
		s, changed := p.stats, p.changed
		p.mu.Unlock()
		if condition(s) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("proxy: waited in vain, at %+v: %w", s, context.Cause(ctx))
		}
	}
}

// Close stops listening, resets all connections, and returns when no goroutine
// of the proxy is left. It may be called more than once.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.listener.Close()
	p.CutAll()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		l := newLink(p, c.(*net.TCPConn))
		if !p.admit(l) {
			l.reset()
			continue
		}
		p.work.Go(l.run) // ends when both directions have, or the link is reset
	}
}

// admit counts a new connection and reports whether it may go on.
func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Accepted++
	if p.mode.fault == refuse {
		p.stats.Refused++
	}
	p.tellLocked()
	if p.closed || p.mode.fault == refuse {
		return false
	}
	p.links[l] = true
	p.stats.Open++
	return true
}

// forget takes a link off the list, and counts what it still held.
func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	p.stats.Open--
	p.stats.Held -= l.held
	p.stats.Dropped += l.held
	p.tellLocked()
}

// setLocked changes the mode and returns the links that can't go on under the
// new one.
func (p *Proxy) setLocked(m Mode) []*link {
	var holed []*link
	for l := range p.links {
		if l.holed && m != DropReplies {
			holed = append(holed, l)
		}
	}
	p.mode = m
	p.epoch++
	p.tellLocked()
	return holed
}

// tellLocked wakes all who wait for a change.
func (p *Proxy) tellLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}
