package proxy

import "time"

// direction is a way through the proxy.
type direction int

const (
	request direction = iota // from the client to the server
	reply                    // from the server to the client
)

// verdict is what happens to a chunk now.
type verdict int

const (
	forward verdict = iota
	hold            // ask again when something changes
	drop
	cut // drop it, and end the link
)

// judge decides about a chunk of n bytes that came at a time; for hold, until is
// when to ask again even if nothing changes, if it isn't zero. n is 0 for the
// end of a stream. It counts what it decides, in the same breath: a mode that is
// set later finds all that was done under this one.
func (p *Proxy) judge(l *link, d direction, n int, came time.Time) (v verdict, until time.Time, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, until = p.judgeLocked(l, d, n, came)
	if v == hold {
		return v, until, p.changed
	}
	p.stats.Held -= int64(n)
	l.held -= int64(n)
	switch {
	case v != forward:
		p.stats.Dropped += int64(n)
	case d == request:
		p.stats.Requests += int64(n)
	case d == reply:
		p.stats.Replies += int64(n)
	}
	p.tellLocked()
	return v, until, nil
}

func (p *Proxy) judgeLocked(l *link, d direction, n int, came time.Time) (verdict, time.Time) {
	if l.holed && p.mode != DropReplies {
		return hold, time.Time{} // Set is about to reset it
	}
	switch p.mode.fault {
	case blackHole:
		return hold, time.Time{}
	case delayed:
		if due := came.Add(p.mode.delay); time.Now().Before(due) {
			return hold, due
		}
	case dropReplies:
		if d == reply {
			return p.dropLocked(l, n), time.Time{}
		}
	case cutAfterRequest, cutOnce:
		if n == 0 {
			break
		}
		if d == request {
			l.asked = p.epoch
		} else if l.asked == p.epoch {
			return p.cutLocked(l), time.Time{}
		}
	}
	return forward, time.Time{}
}

// dropLocked loses a reply; the end of a connection is a reply like another, but
// one that can still be given when the mode ends.
func (p *Proxy) dropLocked(l *link, n int) verdict {
	if n == 0 {
		return hold
	}
	l.holed = true
	return drop
}

func (p *Proxy) cutLocked(l *link) verdict {
	l.isCut = true
	p.stats.Cuts++
	if p.mode.fault == cutOnce {
		p.setLocked(Pass)
	}
	return cut
}

// take counts bytes that came into the proxy's hands.
func (p *Proxy) take(l *link, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.held += int64(n)
	p.stats.Held += int64(n)
	p.tellLocked()
}

// passage waits until the mode lets a new connection through to the server; it
// returns false if the link ends first.
func (p *Proxy) passage(l *link) bool {
	for {
		p.mu.Lock()
		closed, changed := p.mode.fault == blackHole, p.changed
		p.mu.Unlock()
		if !closed {
			return true
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
			return false
		}
	}
}

func (p *Proxy) countRefused() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Refused++
	p.tellLocked()
}
