package pglock

import (
	"strings"
	"time"

	"github.com/dibslock/dibs/driver"
)

// guardPoll is when to ask again about a claim that a transaction relies on: its
// commit tells nobody.
const guardPoll = 100 * time.Millisecond

// acquire asks once for c.
func (n *name) acquire(c driver.Claim) (driver.Grant, error) {
	if err := n.judge(c); err != nil {
		return driver.Grant{}, n.queue(c, err)
	}
	return n.take(c), nil
}

// judge brings n up to now and tells why c can't be granted; nil: take grants it.
// It takes no place.
func (n *name) judge(c driver.Claim) error {
	n.end()
	h, p := n.granted(c.ID), n.waiting(c.ID)
	if h != nil && !h.repeats(c) || p != nil && !p.repeats(c) {
		return driver.Rejectedf(c.Name, "the claim was asked for before with other units, another capacity or another claim to replace")
	}
	if p != nil {
		n.refresh(p, c, 2) // an ask need not write: law 30
	}
	n.promote()
	if h := n.granted(c.ID); h != nil {
		if h.is(driver.Revoked) {
			return &driver.HeldError{Name: n.key, Holder: h.holder(n.now, h.Until), RetryAfter: n.after(h.gone())}
		}
		return nil
	}
	if c.From != "" && n.held(c.From) == nil {
		return n.lost(c.From)
	}
	if n.shrinks(c) || n.room(c) && (c.Barging || len(n.ahead(c)) == 0) {
		return nil
	}
	return n.refusal(c)
}

// take grants c, or proves it if it is live already. judge has allowed it.
func (n *name) take(c driver.Claim) driver.Grant {
	if h := n.held(c.ID); h != nil {
		h.prove(c, n.now)
		return h.grant(c.TTL)
	}
	n.leave(c.ID)
	r := n.row(c)
	n.give(r, driver.Held, n.now+r.TTL)
	r.Seq = r.Token
	if r.Heard == 0 {
		r.Heard = n.now
	}
	n.rows = append(n.rows, r)
	n.log(driver.EventGranted, r)
	if c.From != "" {
		n.promote() // it may have shrunk
	}
	return r.grant(c.TTL)
}

// row is a new row for c.
func (n *name) row(c driver.Claim) *row {
	return &row{
		Name: n.key, ID: []byte(c.ID), Units: c.Units, Capacity: c.Capacity, Origin: []byte(c.From),
		Note: strings.ReplaceAll(c.Note, "\x00", "\uFFFD"), // PostgreSQL's text knows no zero
		TTL:  micros(c.TTL), Patience: micros(c.Patience), Keep: micros(c.Keep), Delay: micros(c.Delay), Since: n.now,
		fresh: true,
	}
}

// refresh makes the place wait for c.Patience from now, unless more than that part
// of it is left; it never shortens.
func (n *name) refresh(p *row, c driver.Claim, part int64) {
	if d := micros(c.Patience); d > 0 && p.Until-n.now <= d/part {
		p.Patience, p.Until, p.changed = d, max(p.Until, n.now+d), true
	}
}

// queue puts c, refused by err, in line if it may wait and does not yet, and
// returns the refusal with its place.
func (n *name) queue(c driver.Claim, err error) error {
	e, ok := err.(*driver.HeldError)
	if !ok || e.Place != 0 || e.Deadlock || c.Patience == 0 || n.granted(c.ID) != nil {
		return err
	}
	n.leave(c.ID) // if it is dead
	p := n.row(c)
	p.Seq = n.draw()
	p.set(driver.Waiting, n.now+p.Patience)
	n.rows = append(n.rows, p)
	e.Place = uint64(p.Seq)
	return e
}

// ahead returns the live places that c has to wait for: those before its own, or
// all; none that does not grow if c does.
func (n *name) ahead(c driver.Claim) []*row {
	var ps []*row
	for _, p := range n.line() {
		if string(p.ID) == c.ID {
			break
		}
		if (c.From == "" || len(p.Origin) > 0) && n.waits(p) {
			ps = append(ps, p)
		}
	}
	return ps
}

// refusal says what is in c's way.
func (n *name) refusal(c driver.Claim) *driver.HeldError {
	e := &driver.HeldError{Name: n.key}
	if p := n.waiting(c.ID); p != nil {
		e.Place = uint64(p.Seq)
	}
	first := int64(1<<63 - 1) // after which the answer could change
	from, room := n.held(c.From), n.room(c)
	for _, r := range n.rows {
		if !r.taking() || r == from && !n.guarded[r.Seq] {
			continue
		}
		end := r.gone()
		if n.guarded[r.Seq] {
			end = max(end, n.now+micros(guardPoll))
		}
		first = min(first, end)
		if !room && e.Holder == nil {
			e.Holder = r.holder(n.now, r.Until)
		}
	}
	for _, p := range n.ahead(c) {
		if !c.Barging {
			first = min(first, n.dies(p))
			e.Reserved = room
		}
		e.Deadlock = e.Deadlock || c.From != ""
	}
	if room && !e.Reserved {
		first = n.now // it would be granted if it asked
	}
	e.RetryAfter = n.after(first)
	return e
}

// after is the time from now to t, at least a step: 0 would be unknown.
func (n *name) after(t int64) time.Duration { return max(timeStep, span(t-n.now)) }

// dies is when the place p is dead if nobody acts.
func (n *name) dies(p *row) int64 {
	if from := n.held(string(p.Origin)); from != nil {
		return min(p.Until, from.Until)
	}
	return p.Until
}

// lost tells why the claim with this ID can't be acted on.
func (n *name) lost(id string) error {
	if h := n.granted(id); h != nil && h.is(driver.Revoked) {
		return driver.ErrRevoked
	}
	return n.notHeld()
}

// notHeld names the newest of those who hold n now.
func (n *name) notHeld() *driver.NotHeldError {
	e := &driver.NotHeldError{Name: n.key}
	var newest *row
	for _, r := range n.rows {
		if r.taking() && (newest == nil || r.Token > newest.Token) {
			newest = r
		}
	}
	if newest != nil {
		e.By = newest.holder(n.now, newest.Until)
	}
	return e
}
