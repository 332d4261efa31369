package memlock

import (
	"context"
	"slices"
	"time"

	"github.com/dibslock/dibs/driver"
)

// Acquire asks once for c.
func (s *Store) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	c, err := c.Check(s.m.facts)
	if err != nil {
		return driver.Grant{}, err
	}
	if err := s.enter(ctx); err != nil {
		return driver.Grant{}, err
	}
	defer s.m.mu.Unlock()
	now := time.Now()
	n := s.m.nameLocked(c.Name)
	defer s.m.forgetLocked(n)
	if err := n.judge(c, now); err != nil {
		return driver.Grant{}, n.queue(c, s, now, err)
	}
	return n.take(c, s, now), nil
}

// AcquireAll asks once for all of cs: it grants all or none.
func (s *Store) AcquireAll(ctx context.Context, cs []driver.Claim) ([]driver.Grant, error) {
	cs = slices.Clone(cs)
	names := make(map[string]bool)
	for i, c := range cs {
		c, err := c.Check(s.m.facts)
		if err != nil {
			return nil, err
		}
		if names[c.Name] {
			return nil, driver.Rejectedf(c.Name, "the name is twice in one batch")
		}
		names[c.Name] = true
		cs[i] = c
	}
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.m.mu.Unlock()
	now := time.Now()
	for _, c := range cs {
		n := s.m.nameLocked(c.Name)
		defer s.m.forgetLocked(n)
		if err := n.judge(c, now); err != nil {
			return nil, err
		}
	}
	// The names are distinct, so that no grant changes what was judged.
	var gs []driver.Grant
	for _, c := range cs {
		gs = append(gs, s.m.nameLocked(c.Name).take(c, s, now))
	}
	return gs, nil
}

// judge brings n up to now and tells why c can't be granted; nil: take grants it.
// It takes no place.
func (n *name) judge(c driver.Claim, now time.Time) error {
	n.end(now)
	h, p := n.granted(c.ID), n.waiting(c.ID, now)
	if h != nil && !same(h.Claim, c) || p != nil && !same(p.Claim, c) {
		return driver.Rejectedf(c.Name, "the claim was asked for before with other units, another capacity or another claim to replace")
	}
	if p != nil {
		p.refresh(c, now)
	}
	n.promote(now)
	if h := n.granted(c.ID); h != nil {
		if h.state == driver.Revoked {
			return &driver.HeldError{Name: n.key, Holder: h.holder(now), RetryAfter: h.gone().Sub(now)}
		}
		return nil
	}
	if c.From != "" && n.held(c.From) == nil {
		return n.lost(c.From, now)
	}
	if n.shrinks(c) || n.room(c) && (c.Barging || !n.behind(c, now)) {
		return nil
	}
	return n.refusal(c, now)
}

// take grants c, or proves it if it is live already. judge has allowed it.
func (n *name) take(c driver.Claim, s *Store, now time.Time) driver.Grant {
	if h := n.held(c.ID); h != nil {
		h.prove(c, now)
		return h.grant(c.TTL)
	}
	n.leave(c.ID)
	h := n.grant(c, s, now)
	if h.heard.IsZero() {
		h.heard = now
	}
	n.log(driver.EventGranted, h)
	if c.From != "" {
		n.promote(now) // it may have shrunk
	}
	return h.grant(c.TTL)
}

// same tells whether c repeats old.
func same(old, c driver.Claim) bool {
	return old.Units == c.Units && old.Capacity == c.Capacity && old.From == c.From
}

// refresh makes p wait for c.Patience from now; it never shortens.
func (p *place) refresh(c driver.Claim, now time.Time) {
	if until := now.Add(c.Patience); until.After(p.until) {
		p.until = until
	}
}

// ahead returns the live places that c has to wait for: those before its own,
// or all; none that does not grow if c does.
func (n *name) ahead(c driver.Claim, now time.Time) []*place {
	var ps []*place
	for _, p := range n.line {
		if p.ID == c.ID {
			break
		}
		if n.live(p, now) && (c.From == "" || p.From != "") {
			ps = append(ps, p)
		}
	}
	return ps
}

// behind tells whether a live place is ahead of c.
func (n *name) behind(c driver.Claim, now time.Time) bool { return len(n.ahead(c, now)) > 0 }

// refusal says what is in c's way.
func (n *name) refusal(c driver.Claim, now time.Time) *driver.HeldError {
	e := &driver.HeldError{Name: n.key}
	if p := n.waiting(c.ID, now); p != nil {
		e.Place = p.number
	}
	var ends []time.Time // after each of them the answer could change
	from, room := n.held(c.From), n.room(c)
	for _, h := range n.claims {
		if h == from {
			continue
		}
		ends = append(ends, h.gone())
		if !room && e.Holder == nil {
			e.Holder = h.holder(now)
		}
	}
	for _, p := range n.ahead(c, now) {
		if !c.Barging {
			ends = append(ends, p.dies(n))
			e.Reserved = room
		}
		e.Deadlock = e.Deadlock || c.From != ""
	}
	if room && !e.Reserved {
		ends = append(ends, now) // it would be granted if it asked
	}
	e.RetryAfter = max(n.m.facts.Step, slices.MinFunc(ends, time.Time.Compare).Sub(now)) // 0 would be unknown
	return e
}

// dies is when p is dead if nobody acts.
func (p *place) dies(n *name) time.Time {
	if from := n.held(p.From); from != nil && from.until.Before(p.until) {
		return from.until
	}
	return p.until
}

// queue puts c, refused by err, in line if it may wait and does not yet, and
// returns the refusal with its place.
func (n *name) queue(c driver.Claim, s *Store, now time.Time, err error) error {
	e, ok := err.(*driver.HeldError)
	if !ok || e.Place != 0 || e.Deadlock || c.Patience == 0 || n.granted(c.ID) != nil {
		return err
	}
	n.leave(c.ID) // if it is dead
	p := &place{Claim: c, client: s, number: n.next(), taken: now, until: now.Add(c.Patience)}
	if c.From != "" {
		n.line = slices.Insert(n.line, 0, p) // whoever grows stands before all others
	} else {
		n.line = append(n.line, p)
	}
	e.Place = p.number
	return e
}
