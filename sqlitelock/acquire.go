package sqlitelock

import (
	"time"

	"github.com/dibslock/dibs/driver"
)

// judge brings n up to now and tells why c can't be granted; nil: take grants it.
// It takes no place.
func (n *name) judge(c driver.Claim, s *step) error {
	n.end(s)
	h, p := n.granted(c.ID), n.waiting(c.ID, s)
	if h != nil && !h.repeats(c) || p != nil && !p.repeats(c) {
		return driver.Rejectedf(c.Name, "the claim was asked for before with other units, another capacity or another claim to replace")
	}
	if p != nil {
		p.refresh(c, s.now)
	}
	n.promote(s)
	return n.verdict(c, s)
}

// verdict tells whether c, with n as it is, is granted. It changes nothing.
func (n *name) verdict(c driver.Claim, s *step) error {
	if h := n.granted(c.ID); h != nil {
		if h.state == driver.Revoked {
			return &driver.HeldError{Name: n.key, Holder: h.holder(n.key, s.now), RetryAfter: after(h.gone(), s.now)}
		}
		return nil
	}
	if c.From != "" && n.held(c.From) == nil {
		return n.lost(c.From, s)
	}
	if n.shrinks(c) || n.room(c) && (c.Barging || len(n.ahead(c, s)) == 0) {
		return nil
	}
	return n.refusal(c, s)
}

// refresh makes the place wait for c.Patience from now; it never shortens.
func (r *row) refresh(c driver.Claim, now int64) {
	if until := later(now, c.Patience); until > r.until {
		r.until, r.patience = until, c.Patience
		r.mark(changed)
	}
}

// take grants c, or proves it if it is live already. judge has allowed it.
func (n *name) take(c driver.Claim, s *step) driver.Grant {
	if h := n.held(c.ID); h != nil {
		h.prove(c, s.now)
		return h.grant(c.TTL)
	}
	n.leave(c.ID)
	seq := s.draw()
	r := &row{seq: seq, id: c.ID, since: s.now, until: later(s.now, c.TTL), change: fresh}
	r.fill(c, s)
	n.give(r, driver.Held, uint64(seq), s)
	if r.kept == 0 {
		r.kept = s.now
	}
	n.rows = append(n.rows, r)
	n.log(s, driver.EventGranted, r)
	if c.From != "" {
		n.promote(s) // it may have shrunk
	}
	return r.grant(c.TTL)
}

// fill sets what the claimant said, and who it is.
func (r *row) fill(c driver.Claim, s *step) {
	r.units, r.capacity, r.origin, r.note = c.Units, c.Capacity, c.From, c.Note
	r.ttl, r.patience, r.keep, r.delay = c.TTL, c.Patience, c.Keep, c.Delay
	r.client, r.proof, r.domain = s.client, s.proof, s.domain
}

// give makes r, which is not among the claims, a live claim under a new token in
// the place of the one that it replaces.
func (n *name) give(r *row, state driver.State, token uint64, s *step) {
	took := false
	for _, o := range n.rows {
		if o.has(flagTook) {
			took = true
			o.set(flagTook, false)
		}
	}
	if h := n.find(func(o *row) bool { return o.state == ended }); h != nil {
		n.remove(h)
	}
	r.set(flagTookOver, took)
	r.fence = n.fence(r.mode(), token) // r is not among the claims yet
	r.state, r.token = state, token
	if from := n.held(r.origin); from != nil {
		n.log(s, driver.EventReleased, from)
		r.kept = from.kept
		n.remove(from)
	}
	r.mark(changed)
}

// ahead returns the live places that c has to wait for: those before its own, or
// all; none that does not grow if c does.
func (n *name) ahead(c driver.Claim, s *step) []*row {
	var ahead []*row
	for _, r := range n.line() {
		if r.id == c.ID {
			break
		}
		if (c.From == "" || r.origin != "") && n.waits(r, s) {
			ahead = append(ahead, r)
		}
	}
	return ahead
}

// refusal says what is in c's way.
func (n *name) refusal(c driver.Claim, s *step) *driver.HeldError {
	e := &driver.HeldError{Name: n.key}
	if p := n.waiting(c.ID, s); p != nil {
		e.Place = uint64(p.seq)
	}
	first := int64(1<<63 - 1) // after which the answer could change
	from, room := n.held(c.From), n.room(c)
	for _, r := range n.rows {
		if !r.taking() || r == from {
			continue
		}
		first = min(first, r.gone())
		if !room && e.Holder == nil {
			e.Holder = r.holder(n.key, s.now)
		}
	}
	for _, p := range n.ahead(c, s) {
		if !c.Barging {
			first = min(first, n.dies(p))
			e.Reserved = room
		}
		e.Deadlock = e.Deadlock || c.From != ""
	}
	if room && !e.Reserved {
		first = s.now // it would be granted if it asked
	}
	e.RetryAfter = after(first, s.now)
	return e
}

// after is the time from now to t, at least a step: 0 would be unknown.
func after(t, now int64) time.Duration { return max(timeStep, time.Duration(t-now)) }

// dies is when the place p is dead if nobody acts.
func (n *name) dies(p *row) int64 {
	if from := n.held(p.origin); from != nil {
		return min(p.until, from.until)
	}
	return p.until
}

// queue puts c, refused by err, in line if it may wait and does not yet, and
// returns the refusal with its place.
func (n *name) queue(c driver.Claim, s *step, err error) error {
	e, ok := err.(*driver.HeldError)
	if !ok || e.Place != 0 || e.Deadlock || c.Patience == 0 || n.granted(c.ID) != nil {
		return err
	}
	n.leave(c.ID) // if it is dead
	p := &row{
		seq: s.draw(), state: driver.Waiting, id: c.ID,
		since: s.now, until: later(s.now, c.Patience), change: fresh,
	}
	p.fill(c, s)
	n.rows = append(n.rows, p)
	e.Place = uint64(p.seq)
	return e
}

// leave takes the place with this ID, live or dead, out of the line.
func (n *name) leave(id string) {
	if p := n.find(func(r *row) bool { return r.id == id && r.state == driver.Waiting }); p != nil {
		n.remove(p)
	}
}

// promote grants the leading places that fit, each for the hand-over TTL, and
// signals their waiters. It follows every step that may let a place in.
func (n *name) promote(s *step) {
	line, dead := n.line(), 0
	for i, p := range line {
		switch {
		case !n.waits(p, s):
			if dead == maxDead {
				n.nudge(line[i:], s)
				return
			}
			n.remove(p)
			dead++
		case n.room(p.claim(n.key)):
			n.hand(p, s)
		default:
			return
		}
	}
}

// nudge tells the first live place of line to ask: its ask clears the dead ones
// that this step left.
func (n *name) nudge(line []*row, s *step) {
	for _, p := range line {
		if n.waits(p, s) {
			s.signal(p, n.key, false)
			return
		}
	}
}

// hand makes the place p a claim that waits to be heard of.
func (n *name) hand(p *row, s *step) {
	left := time.Duration(p.until - s.now)
	n.give(p, driver.Handed, uint64(s.draw()), s)
	p.since, p.until = s.now, later(s.now, min(handOver, left))
	n.log(s, driver.EventHanded, p)
	s.signal(p, n.key, true)
}
